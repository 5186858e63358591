import type { Context } from 'koa'

/** Sends `100 Continue` to a client that waits for it before it sends its body (`Expect: 100-continue`). */
export const sendContinue = (ctx: Context): void => {
  if (!awaitsContinue(ctx)) return
  ctx.state['continued'] = true
  ctx.res.writeContinue()
}

/** Whether the client still waits for `100 Continue`. It may then send its body or another request next. */
export const awaitsContinue = (ctx: Context): boolean =>
  /^100-continue$/i.test(ctx.get('Expect')) && ctx.state['continued'] !== true
