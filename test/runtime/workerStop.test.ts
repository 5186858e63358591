import * as assert from 'uvu/assert'
import { streamOf } from '../../src/events/streams.ts'
import { newId } from '../../src/ids.ts'
import { silent } from '../../src/log.ts'
import { Payloads } from '../../src/payloads.ts'
import type { Outcome, Runtime } from '../../src/runtime/runtime.ts'
import type { EventStore } from '../../src/ports/eventStore.ts'
import { openFiles } from '../../src/roles/node.ts'
import { Worker } from '../../src/runtime/worker.ts'
import { Keyring } from '../../src/secrets.ts'
import { cause, openNode } from '../sagas/openNode.ts'
import { forwarding } from '../support/forwarding.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

/** Holds every invocation until it is closed, as a function that never returns would. */
const holdingRuntime = () => {
  const held: ((outcome: Outcome) => void)[] = []
  const lost = { code: 'worker_lost', message: 'closed' }
  const runtime: Runtime = {
    invoke: () => new Promise((resolve) => held.push(resolve)),
    inspect: () => Promise.resolve({ ok: true, functions: [] }),
    prewarm() {},
    children: 0,
    async close() {
      for (const settle of held) settle({ status: 'failed', error: lost })
    },
  }
  return { runtime, held }
}

/** The store, with the deliveries to its consumers counted. */
const countDeliveries = (store: EventStore) => {
  const seen = { deliveries: 0 }
  const counting = forwarding(store, {
    async *consume(...args) {
      for await (const delivery of store.consume(...args)) {
        seen.deliveries++
        yield delivery
      }
    },
  })
  return { seen, counting }
}

const stopping = suite('a worker that stops')

stopping('leaves what waited for a place to the next one', async () => {
  const node = await openNode()
  const { store, commands, views } = node
  const build = { build_id: newId(), project_id: newId(), hash: 'a'.repeat(64), functions: [] }
  const project = streamOf.project(build.project_id)
  await commands.projects.handle(
    project,
    { type: 'CreateProject', project_id: build.project_id, name: 'shop' },
    cause,
  )
  const stored = { size: 1, storage_path: 'x', storage_backend: 'disk', build_type: 'release' } as const
  await commands.projects.handle(project, { type: 'UploadBuild', build: { ...build, ...stored } }, cause)
  await commands.projects.handle(project, { type: 'DeployBuild', build }, cause)
  await views.settled()

  const request = async (): Promise<string> => {
    const [run_id, stream_id] = [newId(), newId()]
    const code = { target: { code: '1' }, project_name: 'shop', run_type: 'eval', attempt: 1 } as const
    const plan = { run_id, stream_id, build_id: build.build_id, project_id: build.project_id, ...code }
    await commands.streams.handle(
      streamOf.stream(stream_id),
      { type: 'RequestRun', env_id: 'env', plan, input: { kind: 'args', value: [] }, create: true },
      cause,
    )
    return stream_id
  }
  const { runtime, held } = holdingRuntime()
  const payloads = new Payloads(node.blobs)
  const { seen, counting } = countDeliveries(store)
  const deps = {
    store: counting,
    commands,
    views,
    payloads,
    ...openFiles(node),
    keyring: new Keyring(new Uint8Array(32)),
    quotas: node.quotas,
    runtime,
    log: silent,
  }
  const worker = new Worker(deps, { maxRuns: 1, runTimeoutMs: 60_000 })
  const first = await request()
  await worker.start()
  await until(() => held.length === 1)
  const second = await request()
  await until(() => seen.deliveries === 2) // the worker has it in hand and no place for it
  await worker.stop({ drainMs: 10 })
  await until(async () => (await node.typesIn(first)).includes('RunFailed'))
  assert.equal(await node.typesIn(second), ['StreamCreated', 'RunRequested'])
  await node.close()
})

stopping.run()
