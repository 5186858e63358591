/** The project of the load, its event type, and the functions that are deployed again and again. */
export const PROJECT = 'crash'
export const EVENT_TYPE = 'work'

/** The module is long enough that its file has several sectors. */
export const functionsOf = (version: string): Readonly<Record<string, string>> => ({
  'jobs.js': `
import { createHash } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { context, currentRun, fn } from 'svc'
import { version } from './version.js'
export const work = fn({ 'on-event': '${EVENT_TYPE}' }, ({ data }) => setTimeout(data.ms, data.n))
const hook = (path) => ({ webhook: { service: 'crash', path, auth: 'none' } })
export const echo = fn(hook('/echo'), ({ body }) => ({ n: body.n, run_id: currentRun().run_id }))
export const deployed = fn(hook('/version'), () => ({ version }))
const hash = (text) => createHash('sha256').update(text).digest('hex')
export const variable = fn(hook('/variable'), ({ body }) =>
  context(body.key).then((value) => ({ hash: hash(value) }), ({ code }) => ({ code })))
`,
  'version.js': `/* ${'-'.repeat(6000)} */\nexport const version = ${JSON.stringify(version)}\n`,
})
