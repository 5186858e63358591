import type { Context } from 'koa'

/** Tells a client that asked whether it may send its body (`Expect: 100-continue`) that it may. */
export const welcome = (ctx: Context): void => {
  if (!isWaiting(ctx)) return
  ctx.state['welcomed'] = true
  ctx.res.writeContinue()
}

/** Whether the client still waits to be told: what comes on its connection next may be the body, or may not. */
export const isWaiting = (ctx: Context): boolean =>
  /^100-continue$/i.test(ctx.get('Expect')) && ctx.state['welcomed'] !== true
