import { deploy, handled, publish, type Run, runsOf } from '../support/build.ts'
import { until } from '../support/until.ts'
import { attackSuite } from './attack.ts'

/** A function that sends the event which starts it, once or twice. */
const ENDLESS = (times: number) => `
  import { fn, send } from 'svc'
  export const again = fn({ 'on-event': 'again' }, async () => {
    for (let i = 0; i < ${times}; i++) await send('again', null)
  })
`

/** Starts runs in three ways without waiting for them, and returns how many had started after two seconds. */
const FAN_OUT = `
  import { call, run, send } from 'svc'
  export const nothing = () => 1
  export const attack = async () => {
    let started = 0
    for (let i = 0; i < 10; i++)
      for (const start of [() => call('main/nothing'), () => send('nobody:listens', i), () => run('main/nothing')])
        start().then(() => started++, () => {})
    await new Promise((resolve) => setTimeout(resolve, 2000))
    return started
  }
`

attackSuite('fair shares', [
  {
    id: 'A/16-starvation/recursion',
    attempt: 'a function that starts itself forever by its own event',
    severity: 'medium',
    async run(target) {
      const { api } = await target.tenant('self_host')
      await deploy(api, 'endless', { 'main.ts': ENDLESS(1) })
      const { event_id } = await publish(api, 'again')
      const last = await until(async () => {
        const { data } = await api.page<Run>('/runs?status=failed&limit=1')
        return data[0]
      })
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
      const started = Number(ended.result)
      if (ended.status !== 'succeeded' || !(started <= 5 + 2 * 5 + 1))
        throw new Error(`${started} runs started within 2 s; the run ended ${ended.status}`)
      return `${started} of 30 runs started within 2 s, the others waited for their turn`
    },
  },
])
