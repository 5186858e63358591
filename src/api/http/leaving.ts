import type { Context } from 'koa'
import { AppError } from '../../errors.ts'

/** Aborts when the client leaves before it has its reply, so that work for it can end. */
export const leaving = ({ res }: Pick<Context, 'res'>): AbortSignal => {
  const left = new AbortController()
  res.once('close', () => left.abort(new AppError('unavailable', 'The client left before the reply')))
  return left.signal
}
