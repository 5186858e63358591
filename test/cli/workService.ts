// A service with the functions that the commands about runs call. A file that imports it stops it.
import { deploy } from '../support/build.ts'
import { cli, cliJson } from '../support/cli.ts'
import { spawnServer } from '../support/server.ts'

const FILES = {
  'work.ts': `import { context, currentRun, emit, fn } from 'svc'
export const add = (a: number, b: number) => a + b
export const echo = (value: unknown) => value
export const greet = () => 'a \\x1b[2J b'
export const fail = (text: string) => {
  throw new TypeError(text, { cause: new Error('the cause') })
}
export const hang = async () => {
  console.log('first')
  await new Promise((resolve) => setTimeout(resolve, 3_600_000))
}
export const talk = fn({ 'on-event': 'talk' }, async (event: any) => {
  for (const word of event.data.words) await emit('word', word)
  console.log('said', event.data.words.length)
  console.error('\\x1b[2J done')
  return event.data.words.length
})
export const flaky = fn({ 'on-event': 'flaky', retry: { attempts: 1, delay: 1 } }, () => {
  throw new Error('attempt ' + currentRun().attempt)
})
export const fallible = fn({ 'on-event': 'fallible', retry: { attempts: 1, delay: 1 } }, () => {
  if (currentRun().attempt === 1) throw new Error('broke')
  return hang()
})
`,
}

export const server = await spawnServer()
await deploy(server.api, 'work', FILES)
await server.api.post('/projects', { name: 'empty' })
export const given = { env: { SVC_URL: server.url, SVC_KEY: server.api.key } }
export const svc = (...args: readonly string[]) => cli(args, given)
export const json = <T>(...args: readonly string[]) => cliJson<T>(args, given)
/** Where a person sees that a run does not exist, or no longer. */
export const seeRun = (id: string): string => `See ${server.url}/ui/runs/${id}\n`
export const lines = <T>(out: string): T[] =>
  out
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as T)

export interface Published {
  readonly event_id: string
  readonly stream_id: string
  readonly handlers?: number
}
