import type { Context } from 'koa'

/** Sends `100 Continue` to a client that waits for it before it sends its body (`Expect: 100-continue`). */
export const welcome = (ctx: Context): void => {
  if (!isWaiting(ctx)) return
  ctx.state['welcomed'] = true
  ctx.res.writeContinue()
}

/** Whether the client still waits for `100 Continue`. It may then send its body or another request next. */
export const isWaiting = (ctx: Context): boolean =>
  /^100-continue$/i.test(ctx.get('Expect')) && ctx.state['welcomed'] !== true
