import * as assert from 'uvu/assert'
import { clock } from '../../../src/clock.ts'
import { pastOf } from '../../../src/commands/audit/past.ts'
import { replayStream } from '../../../src/commands/audit/replayStream.ts'
import { byRun } from '../../../src/events/actor.ts'
import { streamOf } from '../../../src/events/streams.ts'
import { newId } from '../../../src/ids.ts'
import { suite } from '../../support/suite.ts'
import { openCommands } from '../openCommands.ts'
import { plantEnv } from '../plantEnv.ts'

const node = await openCommands()
const { deps, views, store, aggregates } = node
const { env_id } = await plantEnv(node, 'acme')

/** A run writes a file twice, and its environment forgets what the runs of that day did. */
const writeByRun = async () => {
  const [file_id, run_id, path] = [newId(), newId(), 'report.txt']
  const cause = { env_id, correlation_id: 'c', ...byRun(run_id) }
  const write = async (size: number) => {
    const content = { key: newId(), size, etag: '"e"', content_type: 'text/plain', storage_backend: 'disk' }
    const file = { file_id, path, ...content }
    const store = { type: 'StoreFile', file, run_id, now: clock.iso(), demand() {} } as const
    await aggregates.files.handle(streamOf.file(env_id, path), store, cause)
  }
  const before = await store.head()
  await write(1)
  const first = await store.head()
  await write(2)
  const expire = { type: 'ExpireCalls', env_id, before: '9999-01-01' } as const
  await aggregates.calls.handle(streamOf.calls(env_id), expire, cause)
  await views.settled()
  return { file_id, before, first }
}

const written = await writeByRun()

const past = suite('a file that a function wrote before the audit forgot its run')

past('has its past states', async () => {
  const sizeAt = async (position: string, env: string) =>
    (await (await pastOf(deps, position)).file(env, written.file_id))?.size
  assert.is(await sizeAt(written.first, env_id), 1)
  assert.is(await sizeAt(await store.head(), env_id), 2)
  assert.is(await sizeAt(written.before, env_id), undefined)
  assert.is(await sizeAt(written.first, newId()), undefined, 'in another environment')
})

past('is found by its id in a replay', async () => {
  const { total } = await replayStream(deps, { resource: written.file_id, limit: 10, offset: 0 })
  assert.is(total, 2)
})

past.after(() => node.close())
past.run()
