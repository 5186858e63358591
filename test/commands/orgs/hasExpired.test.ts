import * as assert from 'uvu/assert'
import { hasExpired } from '../../../src/commands/orgs/hasExpired.ts'
import { payloadsOf } from '../../../src/content/payloads.ts'
import { streamOf } from '../../../src/events/streams.ts'
import { cause, openNode } from '../../support/openNode.ts'
import { suite } from '../../support/suite.ts'

const node = await openNode()
const { aggregates } = node
const { env_id } = cause
const deleted = { env_id: 'deleted' }

/** Whether a payload of the environment of that day has expired. */
const isExpired = (day: string, env = env_id) =>
  hasExpired({ aggregates }, `${payloadsOf(env)}${day}/abc.json`)

const payloads = suite('a payload that is missing')
payloads.after(() => node.close())

payloads('has not expired while retention has removed none', async () => {
  assert.is(await isExpired('2020-01-01'), false)
})

payloads('has expired if the log says that its day is kept no longer', async () => {
  const before = '2026-05-10'
  await aggregates.calls.handle(streamOf.calls(env_id), { type: 'ExpireCalls', env_id, before }, cause)
  assert.is(await isExpired('2026-05-09'), true)
  assert.is(await isExpired('2026-05-10'), false)
  assert.is(await isExpired('2026-05-09', 'other'), false)
})

payloads('has expired if its environment was deleted', async () => {
  const handle = (command: Parameters<typeof aggregates.envs.handle>[1]) =>
    aggregates.envs.handle(streamOf.env(deleted.env_id), command, { ...cause, ...deleted })
  await handle({ type: 'CreateEnv', ...deleted, org_id: 'org', name: 'dev' })
  assert.is(await isExpired('2026-05-09', deleted.env_id), false)
  await handle({ type: 'DeleteEnv', ...deleted })
  assert.is(await isExpired('2026-05-09', deleted.env_id), true)
})

payloads('has not expired if its key has no day', async () => {
  for (const key of [
    'payloads/2026-05-09/abc.json',
    'payloads/abc.json',
    `builds/${env_id}/2026-05-09/abc.json`,
  ])
    assert.is(await hasExpired({ aggregates }, key), false)
})

payloads.run()
