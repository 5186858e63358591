import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import * as assert from 'uvu/assert'
import { openEventStore } from '../../src/adapters/embedded/eventStore/index.ts'
import { notHere } from '../support/notHere.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { straceProblem } from './strace.ts'

const program = fileURLToPath(new URL('./programs/failedSyncs.ts', import.meta.url))

/** Appends to a log after its second opening. `failing`: the syncs of the WAL that the disk refuses, such as `7..8`. */
const append = async (counts: readonly number[], { failing }: { failing?: string } = {}) => {
  const dir = tempDir()
  await openEventStore({ dir }).close()
  const trace = join(tempDir(), 'trace')
  const syncs = 'fsync,fdatasync'
  const injected = failing ? ['-e', `inject=${syncs}:error=EIO:when=${failing}`] : []
  const options = [
    '-f',
    '-qq',
    '-o',
    trace,
    '-P',
    join(dir, 'log.db-wal'),
    '-e',
    `trace=${syncs}`,
    ...injected,
  ]
  const command = [process.execPath, '--disable-warning=ExperimentalWarning', program, dir]
  const { status, stdout, stderr } = spawnSync('strace', [...options, ...command, ...counts.map(String)], {
    encoding: 'utf8',
  })
  assert.is(status, 0, stderr)
  const [before = NaN, after = NaN] = stdout.split(' ').map(Number)
  return {
    copy: join(dir, 'copy'),
    appended: after - before,
    syncs: readFileSync(trace, 'utf8').split('\n').length - 1,
  }
}

const problem = straceProblem()
if (problem !== null) {
  notHere('appends whose sync failed', problem)
} else {
  const failed = suite('appends whose sync failed', { timeoutMs: 120_000 })

  for (const [what, first, failing] of [
    ['after others', [1], (syncs: number) => `${syncs + 1}..${syncs + 2}`],
    // The first commit of a WAL syncs its header too.
    ['at the begin of a WAL', [], (syncs: number) => `${syncs + 2}..${syncs + 4}+2`],
  ] as const)
    failed(`${what} are not taken for lost ones after a crash`, async () => {
      const { syncs } = await append(first)
      // Each is shorter than the one before, and leaves the end of that in the WAL.
      const { copy, appended } = await append([...first, 400, 200, 1], { failing: failing(syncs) })
      assert.is(appended, first.length + 1)
      const store = openEventStore({ dir: copy })
      assert.is(Number(await store.head()), appended)
      assert.is(await store.remembered(), await store.head())
      await store.close()
    })

  failed.run()
}
