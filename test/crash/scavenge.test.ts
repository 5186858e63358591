import { existsSync, globSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { openEventStore } from '../../src/adapters/embedded/eventStore/index.ts'
import type { EventStore } from '../../src/ports/eventStore.ts'
import { fact, facts, failureOf } from '../contracts/eventStore/facts.ts'
import { wholeLog } from '../contracts/eventStore/gather.ts'
import { randomOf } from '../support/randomOf.ts'
import { notHere } from '../support/notHere.ts'
import { suite } from '../support/suite.ts'
import { cut } from './cut.ts'
import { materialize } from './materialize.ts'
import { type Recorded, recordProgram } from './recordProgram.ts'
import { straceProblem } from './strace.ts'

const SEED = Number(process.env['SVC_TEST_SEED'] ?? 29)
const STATES = Number(process.env['SVC_TEST_STATES'] ?? 30)
/** More than the log keeps free for new events. */
const LARGE = { events: 380, bytes: 60_000 }
const SMALL_EVENTS = 600
const EXPIRING = new Set(['large', 'small'])
const FAST = '/dev/shm'

/** Writes streams that expire between parts of one that does not. Returns the ids that must never be lost. */
const prepare = async (dir: string): Promise<readonly string[]> => {
  const store = openEventStore({ dir })
  const kept = facts('env', 20)
  const text = 'x'.repeat(LARGE.bytes)
  for (let n = 0; n < LARGE.events; n++)
    await store.append('large', [fact('env', text)], n === 0 ? 'none' : n - 1)
  for (const [n, event] of kept.entries()) {
    const part = facts('env', SMALL_EVENTS / kept.length)
    const at = n * part.length
    await Promise.all([
      store.append('small', part, n === 0 ? 'none' : at - 1),
      store.append('kept', [event], n === 0 ? 'none' : n - 1),
    ])
  }
  await store.close()
  return kept.map(({ id }) => id)
}

const demandWhole = async (store: EventStore, acknowledged: readonly string[]): Promise<void> => {
  const log = await wholeLog(store)
  const ids = new Set(log.map(({ id }) => id))
  const lost = acknowledged.filter((id) => !ids.has(id))
  assert.equal(lost, [], 'lost events')
  const kept = log.filter(({ stream }) => stream === 'kept')
  assert.equal(await Array.fromAsync(store.read('kept')), kept)
  assert.equal(
    kept.map(({ revision }) => revision),
    kept.map((_, n) => n),
  )
}

/** What is left is read, scavenged again and continued. */
const check = async (dir: string, acknowledged: readonly string[], isExpired: boolean): Promise<void> => {
  const store = openEventStore({ dir })
  try {
    await demandWhole(store, acknowledged)
    if (isExpired) {
      await store.scavenge?.()
      await demandWhole(store, acknowledged)
      const left = (await wholeLog(store)).filter(({ stream }) => EXPIRING.has(stream))
      assert.is(left.length, 0, 'expired events are left')
    }
    for (const [stream, head] of [
      ['large', LARGE.events - 1],
      ['small', SMALL_EVENTS - 1],
    ] as const) {
      const failure = await failureOf(store.append(stream, [fact('env', 0)], 'none'))
      assert.is((failure as { data?: { actual?: unknown } }).data?.actual, head, `${stream} begins again`)
      await store.append(stream, [fact('env', 0)], head)
    }
  } finally {
    await store.close()
  }
}

const problem = straceProblem()
if (problem !== null) {
  notHere('power cuts of a scavenge', problem)
} else {
  const powerCuts = suite('a log whose machine loses power while expired events are removed', {
    timeoutMs: 170_000,
  })

  powerCuts('has every other event, and is scavenged to the end afterwards', async () => {
    let before: readonly string[] = []
    const program: Recorded = await recordProgram('scavengedLog', async (root) => {
      before = await prepare(root)
    })
    const random = randomOf(SEED)
    const acknowledged = [...before]
    let isExpired = false
    const disk = program.newDisk()
    const work = mkdtempSync(join(existsSync(FAST) ? FAST : tmpdir(), 'svc-scavenge-'))
    try {
      for (const [at, step] of program.steps.entries()) {
        disk.take(step)
        if (step.type === 'begin' && step.operation.kind === 'reply')
          for (const name of step.operation.request_ids) {
            if (name.startsWith('appended:')) acknowledged.push(name.slice('appended:'.length))
            isExpired ||= name === 'expired'
          }
        if (random(program.steps.length) >= STATES) continue
        const { image, dropped } = cut(disk, random)
        const dir = join(work, 'state')
        materialize(image, program.root, dir)
        if (random(2) === 0) for (const file of globSync(join(dir, 'index.db*'))) rmSync(file)
        await check(dir, acknowledged, isExpired).catch((error: unknown) => {
          throw new Error(`step ${at}: ${String(error)}; ${dropped().slice(0, 10).join('; ')}`, {
            cause: error,
          })
        })
        rmSync(dir, { recursive: true })
      }
    } finally {
      rmSync(work, { recursive: true })
    }
    assert.ok(isExpired)
  })

  powerCuts.run()
}
