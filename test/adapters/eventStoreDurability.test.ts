import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import * as assert from 'uvu/assert'
import { openEventStore } from '../../src/adapters/embedded/eventStore/index.ts'
import { wholeLog } from '../contracts/eventStore/gather.ts'
import { randomOf, SEED } from '../support/randomOf.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

const fixture = (name: string): string =>
  fileURLToPath(new URL(`../fixtures/eventStore/${name}.ts`, import.meta.url))
const KILLS = 20

interface Acknowledged {
  readonly stream: string
  readonly revision: number
  readonly cursor: string
}

/** Kills an appending process after `after` acknowledgements; resolves with all that it reported. */
const appendAndKill = async (dir: string, after: number): Promise<Acknowledged[]> => {
  const child = spawn(process.execPath, [fixture('appendForever'), dir], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const closed = once(child, 'close')
  const acknowledged: Acknowledged[] = []
  for await (const line of createInterface({ input: child.stdout })) {
    const [stream = '', revision, cursor = ''] = line.split(' ')
    if (cursor.length === 16) acknowledged.push({ stream, revision: Number(revision), cursor }) // else it was cut by the kill
    if (acknowledged.length === after) child.kill('SIGKILL')
  }
  await closed
  assert.is(child.signalCode, 'SIGKILL')
  return acknowledged
}

const durability = suite('the log after SIGKILL (I1)', { timeoutMs: 170_000 })

durability(
  `killed at ${KILLS} random points (SVC_TEST_SEED=${SEED}): no acknowledged append is lost, and no append is stored in part`,
  async () => {
    const dir = tempDir()
    const below = randomOf(SEED)
    const acknowledged = new Map<string, Acknowledged>()
    for (let kill = 0; kill < KILLS; kill++) {
      const after = 1 + below(120)
      for (const one of await appendAndKill(dir, after)) acknowledged.set(one.cursor, one)
      const store = openEventStore({ dir })
      const all = await wholeLog(store)
      assert.is(await store.remembered(), await store.head(), `after kill ${kill} at ${after}`)
      all.forEach(({ cursor }, i) => assert.is(Number(cursor), i + 1, `after kill ${kill} at ${after}`))
      const heads = new Map<string, number>()
      for (const { stream, revision } of all) {
        assert.is(revision, (heads.get(stream) ?? -1) + 1, `${stream} has no gap`)
        heads.set(stream, revision)
      }
      for (const [stream, head] of heads)
        assert.is((head + 1) % Number(stream.split('-')[2]), 0, `${stream} holds whole appends`)
      for (const { stream, revision, cursor } of acknowledged.values()) {
        const at = all[Number(cursor) - 1]
        assert.equal(
          [at?.stream, at?.revision],
          [stream, revision],
          `${cursor} was acknowledged before kill ${kill} at ${after}`,
        )
      }
      for (const [stream, head] of heads) {
        const revisions = (await Array.fromAsync(store.read(stream))).map(({ revision }) => revision)
        assert.is(revisions.length, head + 1)
        assert.is(revisions.at(-1), head)
      }
      await store.close()
    }
    assert.ok(acknowledged.size > KILLS)
  },
)
durability.run()

const full = suite('a full disk (I9)', { timeoutMs: 120_000 })

const fillAndMakeRoom = async (nameLength: number) => {
  const dir = tempDir()
  // A file may hold 12 MB here: writing on meets what a full disk gives. The limit is lifted from outside.
  const command = 'ulimit -S -f 12288; exec "$0" "$1" "$2" "$3"'
  const child = spawn(
    'bash',
    ['-c', command, process.execPath, fixture('fillDisk'), dir, String(nameLength)],
    {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    },
  )
  const closed = once(child, 'close')
  const said = async () => {
    const [message] = (await Promise.race([
      once(child, 'message'),
      closed.then(([code, signal]) => [{ died: code ?? signal }]),
    ])) as [unknown]
    return message as Record<string, unknown>
  }
  assert.equal(await said(), { refused: ['unavailable'] })
  const lifted = once(
    spawn('prlimit', ['--pid', String(child.pid), '--fsize=unlimited'], { stdio: 'inherit' }),
    'close',
  )
  assert.equal(await lifted, [0, null])
  child.send('go on')
  const { wrong, position, acknowledged } = await said()
  assert.equal(wrong, [])
  assert.is(position, acknowledged)
  assert.equal(await closed, [0, null])
  const store = openEventStore({ dir })
  assert.is((await wholeLog(store)).length, position)
  await store.close()
}
full('refuses writes, loses nothing, and continues when there is room again', () => fillAndMakeRoom(0))
full('refuses writes also when only the index cannot be written', () => fillAndMakeRoom(3000))
full.run()
