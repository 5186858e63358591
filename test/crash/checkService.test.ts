import { randomUUID } from 'node:crypto'
import * as assert from 'uvu/assert'
import { publish, type Run } from '../support/build.ts'
import { randomOf } from '../support/randomOf.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { checkService } from './checkService.ts'
import type { Target } from './client.ts'
import { EVENT_TYPE, PROJECT } from './functions.ts'
import { type Kind, Ledger } from './ledger.ts'
import { allWriters, prepare } from './writers.ts'

/** The checks of a service that has lost something wait until it could have caught up. */
const WAITS_MS = 300

const checks = suite<{ server: TestServer; target: Target; ledger: Ledger }>('the check of a service', {
  timeoutMs: 170_000,
})

checks.before(async (context) => {
  context.server = await startServer({ env: {} })
  context.target = { api: context.server.api, operatorToken: '' }
  context.ledger = new Ledger()
  await prepare(context.target, context.ledger)
  for (const writer of allWriters(context.ledger, randomOf(1), 't'))
    for (let n = 0; n < 3; n++)
      await until(() => writer.write(context.target).then(() => true), { timeoutMs: 120_000, everyMs: 500 })
})

checks('finds nothing if everything that was acknowledged is there', async ({ target, ledger }) => {
  assert.equal(await checkService(target, ledger), [])
})

/** The record of a client that has received one more reply. */
const withAnother = ({ writes }: Ledger, kind: Kind, register: string, value: string, id: string): Ledger => {
  const ledger = new Ledger([...writes])
  ledger.begin(kind, register, value).acknowledged = { request_id: randomUUID(), id }
  return ledger
}

const registerOf = (ledger: Ledger, kind: Kind) => {
  const [write] = ledger.acknowledged(kind)
  return { register: write?.register ?? '', id: write?.acknowledged.id ?? '' }
}

for (const [what, kind, expected] of [
  ['event', 'event', /^lost event/],
  ['webhook', 'webhook', /of an acknowledged webhook/],
] as const)
  checks(`finds a lost ${what}`, async ({ target, ledger }) => {
    const problems = await checkService(target, withAnother(ledger, kind, 'lost', 'lost', randomUUID()), {
      waitsMs: WAITS_MS,
    })
    assert.match(problems.join('\n'), expected)
  })

for (const [what, kind] of [
  ['content of a file', 'file'],
  ['content of an upload', 'upload'],
  ['value of a variable', 'variable'],
  ['deployment', 'deployment'],
] as const)
  checks(`finds a lost ${what}`, async ({ target, ledger }) => {
    const { register, id } = registerOf(ledger, kind)
    const problems = await checkService(target, withAnother(ledger, kind, register, 'newer', id))
    assert.is(problems.length, 1, problems.join('\n'))
    assert.ok(problems[0]?.includes(kind === 'deployment' ? 'newer' : register))
  })

checks('finds a second event of a key', async ({ target, ledger }) => {
  const { register } = registerOf(ledger, 'event')
  await publish(target.api, EVENT_TYPE, { n: register, ms: 0 })
  assert.match((await checkService(target, ledger, { waitsMs: WAITS_MS })).join('\n'), 'expected one event')
})

checks('finds a run that does not end', async ({ target }) => {
  const code = 'await new Promise(() => setTimeout(() => {}, 60_000))'
  target.api.post(`/projects/${PROJECT}/eval`, { code }).catch(() => {})
  await until(async () => (await target.api.page('/runs?status=running')).pagination.total === 1)
  const problems = await checkService(target, new Ledger(), { waitsMs: WAITS_MS })
  assert.match(problems.join('\n'), '1 runs are running')
  const { data } = await target.api.page<Run>('/runs?status=running')
  for (const { run_id } of data) await publish(target.api, 'svc:cancel', { run_id }) // else the service waits for it
})

checks.after(({ server }) => server.stop())
checks.run()
