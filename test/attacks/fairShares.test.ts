import { clock } from '../../src/clock.ts'
import { newId } from '../../src/ids.ts'
import { deploy, handled, publish, type Run, runsOf, type Webhook } from '../support/build.ts'
import type { Api } from '../support/http.ts'
import { SLACK } from '../support/patience.ts'
import { until } from '../support/until.ts'
import { attackSuite } from './attack.ts'
import type { Target } from './target.ts'

/** A function that sends the event which starts it, once or twice. */
const ENDLESS = (times: number) => `
  import { fn, send } from 'svc'
  export const again = fn({ 'on-event': 'again' }, async () => {
    for (let i = 0; i < ${times}; i++) await send('again', null)
  })
`

/** Starts runs in three ways without waiting for them. Returns how many had started after two seconds, and the time. */
const FAN_OUT = `
  import { call, run, send } from 'svc'
  export const nothing = () => 1
  export const attack = async () => {
    let started = 0
    const began = performance.now()
    for (let i = 0; i < 10; i++)
      for (const start of [() => call('main/nothing'), () => send('nobody:listens', i), () => run('main/nothing')])
        start().then(() => started++, () => {})
    await new Promise((resolve) => setTimeout(resolve, 2000))
    return { started, seconds: (performance.now() - began) / 1000 }
  }
`

const HOOK = (service: string) => `
  import { fn } from 'svc'
  export const hook = fn({ webhook: { service: '${service}', path: '/hook' } }, () => ({ status: 200, body: 'ok' }))
`

/** Sleeps for the longest time that a run may take. */
const SLEEPING = `
  import { fn } from 'svc'
  export const sleep = fn({ 'on-event': 'sleep', timeout: 900000 }, () => new Promise((r) => setTimeout(r, 890000)))
`

/** Functions that sleep in a process each, because they read different context variables. */
const APART = (count: number) => `
  import { fn } from 'svc'
  const sleep = (n: number) =>
    fn({ 'on-event': 'sleep' + n, context: ['KEY_' + n], timeout: 900000 }, () => new Promise((r) => setTimeout(r, 890000)))
  ${Array.from({ length: count }, (_, n) => `export const sleep${n} = sleep(${n})`).join('\n')}
`

/** Each handler of the event awaits four child runs with 7 MiB of arguments, which sleep. */
const AWAITING = (count: number) => `
  import { fn, run } from 'svc'
  const part = (n: number) => ({ context: ['KEY_' + n], timeout: 900000 })
  const child = (n: number) => fn(part(n), () => new Promise((r) => setTimeout(r, 890000)))
  const parent = (n: number) =>
    fn({ ...part(n), 'on-event': 'await' }, () =>
      Promise.all(Array.from({ length: 4 }, () => run('main/child' + n, 'x'.repeat(7 * 2 ** 20)))))
  ${Array.from({ length: count }, (_, n) => `export const child${n} = child(${n}), parent${n} = parent(${n})`).join('\n')}
`

const ASKING = `
  import { fn, run, send } from 'svc'
  export const child = (n: number) => n + 1
  export const parent = fn({ 'on-event': 'ask' }, async () => {
    await send('nobody:listens', null)
    return run('main/child', 1)
  })
`

/** Publishes events with 50 requests at a time. */
const flood = async (api: Api, event_type: string, count: number): Promise<void> => {
  let left = count
  await Promise.all(
    Array.from({ length: 50 }, async () => {
      while (left-- > 0) await publish(api, event_type)
    }),
  )
}

/** The URL of a webhook of the victim, which has been called once. */
const hookOf = async (target: Target): Promise<string> => {
  const { api } = target.victim
  const project = `p-${newId()}`
  await deploy(api, project, { 'main.ts': HOOK(project) })
  const [hook] = await api.get<Webhook[]>(`/projects/${project}/webhooks`)
  if (!hook) throw new Error('Expected a webhook')
  await reply(hook.url)
  return hook.url
}

/** The time of a call of the webhook. Throws if it gets no reply: the attacker's runs sleep for minutes. */
const reply = async (url: string): Promise<number> => {
  const began = clock.monotonic()
  const { status } = await fetch(url, { method: 'POST', signal: AbortSignal.timeout(10_000 * SLACK) })
  if (status !== 200) throw new Error(`The victim's webhook returned ${status}`)
  return Math.round(clock.monotonic() - began)
}

const runningOf = async (api: Api): Promise<number> =>
  (await api.page<Run>('/runs?status=running&limit=1')).pagination.total

attackSuite('fair shares', [
  {
    id: 'A/16-starvation/runs',
    attempt:
      'take all places of the worker with 2,100 sleeping runs of one build, then publish 1,000 events more',
    severity: 'high',
    async run(target) {
      const fresh = await target.fresh()
      const hook = await hookOf(fresh)
      const { api } = fresh.attacker
      await deploy(api, 'sleepers', { 'main.ts': SLEEPING })
      await flood(api, 'sleep', 2100)
      const asleep = await reply(hook)
      const flooding = flood(api, 'sleep', 1000)
      const during = await reply(hook)
      await flooding
      await deploy(fresh.victim.api, 'handlers', { 'main.ts': ENDLESS(0) })
      const { event_id } = await publish(fresh.victim.api, 'again')
      await handled(fresh.victim.api, event_id)
      return `with ${await runningOf(api)} runs of the attacker, the victim's webhook replied in ${asleep} ms, during a flood in ${during} ms; its event was handled`
    },
  },
  {
    id: 'A/16-starvation/children',
    attempt:
      'take all places for processes with 40 functions that have one sleeping run each, and share no process',
    severity: 'high',
    async run(target) {
      const fresh = await target.fresh()
      const hook = await hookOf(fresh)
      const { api } = fresh.attacker
      await deploy(api, 'sleepers', { 'main.ts': APART(40) })
      for (let n = 0; n < 40; n++) await publish(api, `sleep${n}`)
      const first = await reply(hook)
      const again = await hookOf(fresh)
      return `with ${await runningOf(api)} sleeping runs of the attacker, the victim's webhook replied in ${first} ms, and that of a new build in ${await reply(again)} ms`
    },
  },
  {
    id: 'A/16-starvation/awaited',
    attempt:
      'await sixteen child runs that sleep, with 112 MiB of arguments, so that no process is read any more',
    severity: 'critical',
    async run(target) {
      const { attacker, victim } = await target.fresh()
      await deploy(victim.api, 'asking', { 'main.ts': ASKING })
      await deploy(attacker.api, 'awaiting', { 'main.ts': AWAITING(4) })
      await publish(attacker.api, 'await')
      await until(async () => (await runningOf(attacker.api)) === 20, { timeoutMs: 60_000, everyMs: 300 })
      const { event_id } = await publish(victim.api, 'ask')
      const [run] = await handled(victim.api, event_id)
      if (run?.result !== 2) throw new Error(`The victim's run ended ${JSON.stringify(run)}`)
      return `with ${await runningOf(attacker.api)} runs of the attacker, the victim's run received the result of its child run`
    },
  },
  {
    id: 'A/16-starvation/recursion',
    attempt: 'a function that starts itself forever by its own event',
    severity: 'medium',
    async run(target) {
      const { api } = await target.tenant('self_host')
      await deploy(api, 'endless', { 'main.ts': ENDLESS(1) })
      const { event_id } = await publish(api, 'again')
      const last = await until(
        async () => (await api.page<Run>('/runs?status=failed&limit=1')).data[0],
        { timeoutMs: 60_000, everyMs: 100 }, // for a hundred runs, one after the other
      )
      const { pagination } = await api.page<Run>('/runs?limit=1')
      if (pagination.total !== 101) throw new Error(`${pagination.total} runs in one chain`)
      await handled(api, event_id)
      return `the chain ended with ${pagination.total} runs: ${last.error?.message}`
    },
  },
  {
    id: 'B/12-rates/function',
    attempt: 'start many runs from one run on a plan of 5 requests per second: call(), run() and send()',
    severity: 'medium',
    async run(target) {
      const { api, org } = await target.tenant('scale')
      await deploy(api, 'fanout', { 'main.ts': FAN_OUT })
      await target.operator.patch(`${target.server.url}/operator/orgs/${org}`, { plan: 'free' })
      await until(async () => (await api.send('GET', '/env')).headers.has('RateLimit'))
      const { event_id } = await until(() => publish(api, 'svc:call', { fn: 'main/attack' }), {
        everyMs: 300,
      })
      const ended = await until(
        async () => {
          const [run] = await runsOf(api, event_id)
          return run?.status === 'running' ? undefined : run
        },
        { timeoutMs: 30_000, everyMs: 300 },
      )
      const { started = NaN, seconds = NaN } = (ended.result ?? {}) as { started?: number; seconds?: number }
      if (ended.status !== 'succeeded' || !(started <= 5 + Math.max(2, seconds) * 5 + 1))
        throw new Error(`${started} runs started within ${seconds} s; the run ended ${ended.status}`)
      return `${started} of 30 runs started within ${Math.round(seconds)} s, the others waited for their turn`
    },
  },
])
