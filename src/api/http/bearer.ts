import { AppError } from '../../errors.ts'

/** The token of `Authorization: Bearer <token>`; the scheme in any case. */
export const bearerOf = (authorization: string | undefined): string | undefined =>
  /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1]

/** The same for whatever is wrong with a credential. */
export const unauthorized = () =>
  new AppError('unauthorized', 'Expected a valid credential in `Authorization: Bearer <token>`')
