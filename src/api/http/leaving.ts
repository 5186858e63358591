import type { Context } from 'koa'
import { AppError } from '../../errors.ts'

/** Aborts when the reply ends, also because the client has left, so that work for it can end. */
export const leaving = ({ res }: Pick<Context, 'res'>): AbortSignal => {
  const left = new AbortController()
  const leave = () => left.abort(new AppError('unavailable', 'The client left before the reply'))
  res.once('close', leave)
  if (res.closed) leave() // the event was emitted before
  return left.signal
}
