import type { Files } from '../support/build.ts'
import type { Expected } from './records.ts'

/** The handlers of the event `fan`. */
const FAN = 8

interface Sample {
  /** Metadata of the function; absent: it is called by reference. */
  readonly meta?: string
  /** The body of an asynchronous function of `input`. */
  readonly body: string
  readonly expected?: Expected
}

const on = (type: string, body: string, more = ''): Sample => ({ meta: `'on-event': '${type}'${more}`, body })

/** Functions that call the service may fail: a call is refused during an outage, and a child run may be lost. */
const JOBS: Readonly<Record<string, Sample>> = {
  quick: on('work', `return input.data.token`),
  slow: on(
    'work',
    `await sleep(input.data.ms); return { token: input.data.token, pad: input.data.pad?.length }`,
  ),
  flaky: on(
    'flaky',
    `if (currentRun().attempt <= input.data.failures) throw new Error('not yet'); return input.data.token`,
    `, retry: { attempts: 3, delay: 300 }`,
  ),
  hopeless: {
    ...on('hopeless', `throw new Error('never')`, `, retry: { attempts: 2, delay: 200 }`),
    expected: 'fails',
  },
  late: { ...on('late', `await sleep(60_000)`, `, timeout: 500`), expected: 'fails' },
  charge: on('charge', `await sleep(200); return input.data.token`, `, once: true`),
  long: on('long', `await sleep(input.data.ms); return input.data.token`),
  tree: {
    ...on(
      'tree',
      `await emit('progress', 0)
      const sums = await Promise.all([run('jobs/leaf', 1), run('jobs/leaf', 2)])
      const { run_id } = await call('jobs/leaf', 3)
      const { event_id } = await send('branch', { of: input.data.token })
      const path = 'soak/runs/' + currentRun().run_id
      await files.put(path, JSON.stringify(sums))
      await emit('progress', 1)
      await called({ sent: [event_id], called: [run_id], stored: [path], emitted: 2 })
      return sums`,
    ),
    expected: 'either',
  },
  leaf: { body: `await sleep(20); return input * 2` },
  branch: on('branch', `return input.data.of`),
  burst: {
    ...on(
      'burst',
      `const sent = []
      for (let n = 0; n < 10; n++) sent.push((await send('branch', { of: n })).event_id)
      await called({ sent, called: [], stored: [], emitted: 0 })`,
    ),
    expected: 'either',
  },
  hook: {
    meta: `webhook: { service: 'soak', path: '/order', auth: 'none' }`,
    body: `return { status: 200, body: input.body }`,
  },
  ...Object.fromEntries(Array.from({ length: FAN }, (_, n) => [`fan${n}`, on('fan', `return ${n}`)])),
}

/** Functions that end their process, beside an innocent one. */
const RISKY: Readonly<Record<string, Sample>> = {
  bystander: on('risk', `await sleep(1000); return input.data.token`),
  exits: { ...on('exit', `process.exit(3)`), expected: 'fails' },
  spins: { ...on('spin', `for (;;);`), expected: 'fails' },
}

const TICKS: Readonly<Record<string, Sample>> = {
  minutely: { meta: `schedule: '* * * * *'`, body: `return input.data.scheduled_time` },
}

const PROJECTS = { jobs: JOBS, risky: RISKY, ticks: TICKS } as const
export type SoakProject = keyof typeof PROJECTS
export const projects = Object.keys(PROJECTS) as SoakProject[]

/** How the runs of each function must end, by its reference. */
export const expectedEnds: ReadonlyMap<string, Expected> = new Map(
  projects.flatMap((project) =>
    Object.entries(PROJECTS[project]).map(
      ([name, { expected = 'succeeds' }]) => [`${project}/${name}`, expected] as const,
    ),
  ),
)

/** The code of a project. Each function first reports to the ledger that it began, and at its end what it called. Each version is a build of its own. */
export const codeOf = (
  project: SoakProject,
  { ledger, version }: { readonly ledger: string; readonly version: number },
): Files => ({
  [`${project}.js`]: `// version ${version}
import { setTimeout as sleep } from 'node:timers/promises'
import { call, currentRun, emit, files, fn, run, send } from 'svc'
const report = async (path, what) => {
  const reply = await fetch('${ledger}' + path, { method: 'POST', body: JSON.stringify(what) })
  if (reply.status !== 204) throw new Error('The ledger returned ' + reply.status)
}
const began = (name, input) => {
  const { run_id, event_id } = currentRun()
  return report('/effects', { fn: name, run_id, event_id: event_id ?? null, token: input?.body?.token })
}
const called = (what) => report('/calls', { run_id: currentRun().run_id, ...what })
${Object.entries(PROJECTS[project])
  .map(([name, { meta, body }]) => {
    const code = `async (input) => { await began('${project}/${name}', input); ${body} }`
    return `export const ${name} = ${meta === undefined ? code : `fn({ ${meta} }, ${code})`}`
  })
  .join('\n')}
`,
})

/** The project without its schedule, so that no tick comes when all work must end. */
export const WITHOUT_TICKS: Files = { 'ticks.js': 'export const nothing = () => null' }
