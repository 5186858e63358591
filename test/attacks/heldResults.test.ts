import { deploy, publish, runsOf } from '../support/build.ts'
import { until } from '../support/until.ts'
import { attackSuite } from './attack.ts'
import { deployed, endOf, FOREVER, shown } from './calls.ts'
import { FORGE } from './flood.ts'

/** More than the 96 MiB of host calls and results that the service holds for all processes. */
const FORGERS = 13

/** Functions that declare different keys of context have processes of their own. No run has the id 1: ids are random. */
const FORGING = `${FORGE}
  import { fn } from 'svc'
  const forging = (key: string) => fn({ context: [key] }, async () => {
    put(frame({ type: 'result', id: 1, value: 'x'.repeat((8 << 20) - 100) }))
    ${FOREVER}
  })
  ${Array.from({ length: FORGERS }, (_, n) => `export const forge${n} = forging('KEY_${n}')`).join('\n')}`

/** Five per second may be sent. */
const SENDS = 60

/**
 * Sends more than the plan allows at once, then makes a call without a rate. Returns how many were sent before that call
 * was served. A process that may hold little is not read after the last of them, and the call does not arrive with it:
 * both are large.
 */
const SENDING = `
  import { files, send } from 'svc'
  export const sends = async () => {
    let sent = 0
    const sending = Array.from({ length: ${SENDS} }, (_, n) =>
      send('nobody:listens', 'x'.repeat(n < ${SENDS - 1} ? 1000 : 400_000)).then(() => sent++))
    await files.put('large', 'x'.repeat(200_000))
    const before = sent
    await Promise.allSettled(sending)
    return before
  }`

attackSuite('results that no run has', [
  {
    id: 'A/05-forged-frames/held',
    attempt: `make the service hold ${8 * FORGERS} MiB: a large result with a guessed id from each of ${FORGERS} processes`,
    severity: 'high',
    run: async ({ attacker, operator, server, tenant }) => {
      const { api, org } = await tenant('scale')
      await deploy(api, 'sending', { 'main.ts': SENDING })
      await operator.patch(`${server.url}/operator/orgs/${org}`, { plan: 'free' })
      const project = await deployed(attacker.api, { 'main.ts': FORGING })
      const forged = await Promise.all(
        Array.from({ length: FORGERS }, (_, n) => endOf(attacker.api, project, `forge${n}`)),
      )
      const others = forged.filter(({ error }) => error?.code !== 'protocol_violation').map(shown)
      if (others.length > 0) throw new Error(`forgers ended ${others.join()}`)
      const { event_id } = await until(() => publish(api, 'svc:call', { fn: 'main/sends' }), { everyMs: 300 })
      const run = await until(
        async () => (await runsOf(api, event_id)).find(({ status }) => status !== 'running'),
        { timeoutMs: 30_000, everyMs: 300 },
      )
      const before = Number(run.result ?? NaN)
      if (!(before < SENDS))
        throw new Error(`a call was served after ${before} of ${SENDS} sends; the run ended ${shown(run)}`)
      return `each forger was ended; another process was read while ${SENDS - before} of its calls waited`
    },
  },
])
