import { newId } from '../../src/ids.ts'
import { deploy, handle, type Run } from '../support/build.ts'
import { type Attack, attackSuite } from './attack.ts'
import { flood, FORGE, writing } from './flood.ts'
import { runIn, type Target } from './target.ts'

const FORGERIES: Readonly<Record<string, string>> = {
  garbage: `Buffer.from('nonsense nonsense')`,
  length: `Buffer.from([255, 255, 255, 255, 1])`,
  'not JSON': `frame('{{{')`,
  list: `frame([1])`,
  'unknown type': `frame({ type: 'reboot' })`,
  'a guessed run': `frame({ type: 'result', id: 1, value: 'forged' })`,
  'a negative run': `frame({ type: 'result', id: -1, value: 1 })`,
  'a run named like a prototype': `frame({ type: 'result', id: '__proto__', value: 1 })`,
  'ready twice': `frame({ type: 'ready' })`,
  'fault twice': `Buffer.concat([frame({ type: 'fault' }), frame({ type: 'fault' })])`,
  'a pong without a ping': `frame({ type: 'pong', n: 1000, rss: 1, leftover: 0 })`,
  'a frame of a task': `frame({ type: 'module', ns: 'x', file: 'x.ts', functions: [] })`,
  'output of another run': `frame({ type: 'log', id: 2, source: 'stdout', text: 'x' })`,
  'a host call of another run': `frame({ type: 'host', id: 2, call: 0, request: { op: 'context', key: 'KEY' } })`,
  'deep JSON': `frame('{"type":"result","id":1,"value":' + '['.repeat(5000) + ']'.repeat(5000) + '}')`,
}

const forged = async (target: Target): Promise<string> => {
  const outcomes: string[] = []
  for (const [name, bytes] of Object.entries(FORGERIES)) {
    const { status, error } = await target.run(
      `${FORGE} export const attack = async () => { put(${bytes}); await new Promise(() => {}) }`,
    )
    if (status !== 'failed' || error?.code !== 'protocol_violation')
      throw new Error(`${name}: the run ended ${status} ${error?.code}`)
    outcomes.push(name)
  }
  const { result } = await runIn(target.victim.api, { 'main.ts': `export const attack = () => 'alive'` })
  if (result !== 'alive') throw new Error('another tenant has no functions any more')
  return `each ended its own process: ${outcomes.join(', ')}`
}

const floods: Readonly<Record<string, string>> = {
  stdout: writing(`Buffer.from('x'.repeat(1000))`, 1),
  'log-frames': writing(`frame({ type: 'log', id: 1, source: 'stdout', text: '' })`),
  'fault-frames': writing(`frame({ type: 'fault' })`),
  'pong-frames': writing(`frame({ type: 'pong', n: 1, rss: 1, leftover: 0 })`),
  'host-frames': writing(
    `frame({ type: 'host', id: 1, call: 0, request: { op: 'emit', data_type: 'x', payload: 1 } })`,
  ),
}

const NAMES = `${FORGE} export const attack = async () => {
  const code = async (work: () => Promise<unknown>) => { try { await work(); return 'accepted' } catch (error: any) { return error.code ?? error.message } }
  const long = 'x'.repeat(1 << 20)
  return {
    reserved: await code(() => send('svc:evil')),
    long: await code(() => send(long)),
    control: await code(() => send('a\\r\\nb\\u0000')),
    data: await code(() => emit(long)),
    dataControl: await code(() => emit('a\\nevent: run:stop')),
    ref: await code(() => run('a/' + long)),
    key: await code(() => context('../' + long)),
    path: await code(() => files.put('../etc/passwd', 'x')),
    longPath: await code(() => files.get(long)),
    prefix: await code(() => files.list({ prefix: long })),
  }
}`

const ofOthers = async (target: Target): Promise<string> => {
  const { api } = target.victim
  const project = `p-${newId()}`
  await deploy(api, project, { 'main.ts': `export const attack = () => 1` })
  await api.post(`/projects/${project}/context`, { key: 'STRIPE_KEY', value: 'planted-for-the-victim' })
  const { project_id } = await api.get<{ project_id: string }>(`/projects/${project}`)
  const { status, result, error } = await target.run(
    `import { context, files, run, send } from 'svc'
    export const attack = async ({ project_id, env_id }: any) => {
      const tries = [
        () => context('STRIPE_KEY'),
        () => (context as any)('STRIPE_KEY', { project_id, env_id }),
        () => run('main/none', { project_id }),
        () => send('svc:call', { fn: 'main/attack', project: project_id }),
        () => send('svc:cancel', { run_id: project_id }),
        () => files.get('victim.txt'),
      ]
      return Promise.all(tries.map((work) => work().then((value: any) => JSON.stringify(value ?? null), (error: any) => error.code)))
    }`,
    { project_id, env_id: target.victim.env_id },
  )
  if (status !== 'succeeded') throw new Error(JSON.stringify(error))
  if (JSON.stringify(result).includes('planted')) throw new Error(`read ${JSON.stringify(result)}`)
  return `refused: ${JSON.stringify(result)}`
}

/** A run that patches what the runtime uses, and a later run of the same function. */
const forgesAnother = async ({ attacker: { api } }: Target): Promise<string> => {
  const project = `p-${newId()}`
  await deploy(api, project, {
    'main.ts': `${FORGE}
      export const waits = async () => { await new Promise((resolve) => setTimeout(resolve, 3000)); return 'its own' }
      export const attack = async () => {
        for (let id = 0; id < 5000; id++) put(frame({ type: 'result', id, value: 'forged' }))
        await new Promise(() => {})
      }`,
  })
  const call = (fn: string): Promise<Run> => handle(api, 'svc:call', { fn, project, args: [] })
  const [waited, forger] = await Promise.all([call('main/waits'), call('main/attack')])
  if (JSON.stringify(waited.result ?? null).includes('forged')) throw new Error('the result was forged')
  return `the other run ended ${waited.status}, the forger ${forger.error?.code}: ids of runs are random`
}

const attacks: Attack[] = [
  {
    id: 'A/05-forged-frames',
    attempt: `write ${Object.keys(FORGERIES).length} kinds of forged frames to the pipe`,
    severity: 'critical',
    run: forged,
  },
  {
    id: 'A/06-forged-requests',
    attempt: 'ask for context, files, functions and runs of another environment',
    severity: 'critical',
    run: ofOthers,
  },
  {
    id: 'A/06-forged-requests/names',
    attempt: 'use names of 1 MB, with control characters, reserved ones and paths outside',
    severity: 'low',
    run: async (target) => {
      const { result, error } = await target.run(NAMES)
      const outcomes = Object.entries((result ?? {}) as Record<string, string>)
      const accepted = outcomes.filter(([, outcome]) => outcome === 'accepted')
      if (outcomes.length === 0 || accepted.length > 0)
        throw new Error(`accepted: ${JSON.stringify(accepted)} ${JSON.stringify(error)}`)
      return outcomes.map(([name, outcome]) => `${name}: ${outcome}`).join(', ')
    },
  },
  {
    id: 'A/08-warm-state/forge',
    attempt: 'forge the result of another run of the same process',
    severity: 'medium',
    run: forgesAnother,
  },
  ...Object.entries(floods).map(([name, code]): Attack => ({
    id: `A/12-floods/${name}`,
    attempt: `flood the service with ${name}`,
    severity: 'medium',
    run: (target) => flood(target, code),
  })),
]

attackSuite('what a child says', attacks)
