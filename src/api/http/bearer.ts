/** The token of `Authorization: Bearer <token>`; the case of the scheme does not matter. */
export const bearerOf = (authorization: string | undefined): string | undefined =>
  /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1]
