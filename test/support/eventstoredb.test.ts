import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { binaryEvent, NO_STREAM, START } from '@eventstore/db-client'
import * as assert from 'uvu/assert'
import { reportExercised } from './engines.ts'
import { clientOf, event, failureOf, read } from './eventstoredb/client.ts'
import { startStandIn, type StandIn } from './eventstoredb/index.ts'
import { suite } from './suite.ts'
import { until } from './until.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const probe = process.env.SVC_TEST_PROBE ?? join(root, '../shared/probes/eventstoredb.mjs')

interface Context {
  standIn: StandIn
}

const standIns = suite<Context>('event store stand-in', { timeoutMs: 150_000 })

standIns.before.each(async (context) => {
  context.standIn = await startStandIn()
})
standIns.after.each(({ standIn }) => standIn.stop())

/** Runs a program to its end and resolves with its output. */
const outputOf = async (file: string, ...args: string[]): Promise<string> => {
  const child = spawn(process.execPath, [file, ...args], { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => void (output += text))
  await once(child, 'close')
  return output
}

if (existsSync(probe)) {
  standIns('answers every request of the probe as the real server did', async ({ standIn }) => {
    reportExercised('the probe of the stand-in')
    const observed = join(dirname(probe), 'eventstoredb.observed.json')
    const output = await outputOf(probe, standIn.url, '--compare', observed)
    assert.match(output, /^\d+ passed, 0 failed$/m)
  })
} else {
  console.log(`The stand-in was not compared with a real server: no probe at ${probe} (set SVC_TEST_PROBE)`)
}

standIns(
  'recognizes a repeated append by ids and revision, whatever was appended since',
  async ({ standIn }) => {
    const client = clientOf(standIn.url)
    const ids = [randomUUID(), randomUUID()]
    const append = (first: number) =>
      client.appendToStream('s', [event(first, ids[0]), event(2, ids[1])], { expectedRevision: NO_STREAM })
    const original = await append(1)
    await client.appendToStream('s', [event(3)], { expectedRevision: 1n })
    assert.equal(await append(1), original)
    assert.equal(await append(77), original, 'other data under an old id is dropped')
    assert.equal(await read(client, 's'), [1, 2, 3])

    const half = [event(1, ids[0]), event(9)]
    const failure = await failureOf(client.appendToStream('s', half, { expectedRevision: NO_STREAM }))
    assert.is(failure.type, 'wrong-expected-version')
  },
)

standIns('keeps its data and its port over a restart, and drops its clients', async ({ standIn }) => {
  const client = clientOf(standIn.url)
  await client.appendToStream('s', [event(1)])
  await standIn.stop()
  assert.is((await failureOf(read(client, 's'))).type, 'unavailable')
  await standIn.restart()
  const other = clientOf(standIn.url)
  assert.equal(await read(other, 's'), [1])
  await other.appendToStream('s', [event(2)], { expectedRevision: 0n })
  assert.equal(await read(client, 's'), [1, 2])
})

standIns('is found among several hosts', async ({ standIn }) => {
  const client = clientOf(`esdb://127.0.0.1:1,127.0.0.1:${standIn.port}?tls=false`)
  await client.appendToStream('s', [event(1)])
  assert.equal(await read(client, 's'), [1])
})

standIns('does not send more than a subscriber accepts', async ({ standIn }) => {
  const client = clientOf(standIn.url)
  const subscription = client.subscribeToStream('s', { fromRevision: START })
  let taken = 0
  let ended = false
  subscription.on('end', () => (ended = true))
  await client.appendToStream('s', [event(1)])
  await until(() => subscription.readableLength > 0) // the event waits in the subscription
  const large = () => binaryEvent({ type: 'Large', data: Buffer.alloc(100_000) })
  for (let round = 0; round < 50; round++) {
    await client.appendToStream('s', Array.from({ length: 10 }, large))
  }
  standIn.misbehave.endSubscriptions()
  subscription.on('data', () => taken++)
  await until(() => ended)
  assert.ok(taken > 1 && taken < 400, `${taken} of 501 events were sent`)
})

standIns('serves other processes until SIGTERM', async () => {
  const main = fileURLToPath(new URL('./eventstoredb/main.ts', import.meta.url))
  const child = spawn(process.execPath, [main], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [line] = (await once(child.stdout.setEncoding('utf8'), 'data')) as [string]
  const client = clientOf(line.trim())
  await client.appendToStream('s', [event(1)])
  assert.equal(await read(client, 's'), [1])
  child.kill('SIGTERM')
  assert.equal(await once(child, 'exit'), [0, null])
})

standIns.run()
