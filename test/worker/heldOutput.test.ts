import * as assert from 'uvu/assert'
import { openAggregates } from '../../src/domain/aggregates.ts'
import { streamOf } from '../../src/events/streams.ts'
import { newId } from '../../src/ids.ts'
import { openLogger } from '../../src/logger.ts'
import { RunOutput } from '../../src/worker/runOutput.ts'
import { openWatchedStore } from '../domain/watchedStore.ts'
import { openWorkbench, resultOf } from '../sandbox/harness.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

/** Their output is 22 MiB of text. Text that is not Latin needs twice as many bytes of memory. */
const RUNS = 90
const LINES = 32

const SOURCE = {
  'm.ts': `
    export const prints = () => { for (let n = 0; n < ${LINES}; n++) console.log('x'.repeat(8000)) }
    export const quiet = () => 'quiet'
  `,
}

const held = suite('output that waits for the event store', { timeoutMs: 120_000 })

held('is read from a process only as far as it may take memory, and later to its end', async () => {
  const { store, watch } = openWatchedStore()
  const answer = Promise.withResolvers<void>()
  watch.before = () => answer.promise
  const { runtime, build, invoke } = await openWorkbench(SOURCE, { heartbeatMs: 60_000 })
  const deps = { aggregates: openAggregates(store), logger: openLogger(() => {}) }
  let written = 0
  const run_ids = Array.from({ length: RUNS }, () => newId())
  const runs = run_ids.map(async (run_id) => {
    const output = new RunOutput(deps, run_id, { env_id: 'env', correlation_id: 'c' })
    await invoke('m/prints', {
      onLog: (line, hold) => {
        written += line.text.length
        output.write(line, hold)
      },
    })
    await output.close()
  })
  await until(() => written > 15 << 20)
  const other = { ...build, rights: { context: ['OTHER'] } }
  for (let n = 0; n < 20; n++) assert.is(await resultOf(invoke('m/quiet', { build: other })), 'quiet')
  assert.ok(written < 18 << 20, `${written} bytes`)
  answer.resolve()
  await Promise.all(runs)
  assert.is(written, RUNS * LINES * 8000)
  for (const run_id of run_ids) {
    const parts = await Array.fromAsync(store.read(streamOf.runLog(run_id)))
    const lines = parts.flatMap(({ event }) => (event.type === 'RunLogged' ? event.lines : []))
    assert.is(lines.length, LINES)
  }
  await runtime.close()
  await store.close()
})

held.run()
