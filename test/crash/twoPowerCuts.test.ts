import { cpSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { openEventStore } from '../../src/adapters/embedded/eventStore/index.ts'
import { facts } from '../contracts/eventStore/facts.ts'
import { notHere } from '../support/notHere.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { imageWith } from './cut.ts'
import { materialize } from './materialize.ts'
import { type Change, isEntryChange } from './nodes.ts'
import { recordProgram } from './recordProgram.ts'
import { straceProblem } from './strace.ts'
import { tearLastCommit } from './tornWal.ts'

/** A commit of several pages. */
const TORN_EVENTS = 40

const problem = straceProblem()
if (problem !== null) {
  notHere('two power cuts', problem)
} else {
  const twoCuts = suite('a log whose machine loses power twice', { timeoutMs: 60_000 })

  for (const [which, events] of [
    ['a commit', 5],
    ['the first commit since the WAL was reset', 0],
  ] as const)
    twoCuts(`during ${which} and during the next start, has lost nothing, and does not seem to`, async () => {
      let torn = { from: 0, to: 0 }
      const program = await recordProgram('openLog', async (root) => {
        const dir = tempDir()
        const store = openEventStore({ dir })
        if (events > 0) await store.append('one', facts('env', events), 'none')
        await store.append('one', facts('env', TORN_EVENTS), events > 0 ? events - 1 : 'none')
        for (const name of ['log.db', 'log.db-wal']) cpSync(join(dir, name), join(root, name))
        await store.close()
        torn = tearLastCommit(join(root, 'log.db-wal'))
      })
      const disk = program.newDisk()
      const wal = disk.at(join(program.root, 'log.db-wal'))
      /** What was written over the torn commit is lost, and so is the truncation: its other frames are still there. */
      const survives = (change: Change) =>
        change.of !== wal ||
        isEntryChange(change) ||
        ('at' in change.change && (change.change.at < torn.from || change.change.at >= torn.to))
      for (const [at, step] of program.steps.entries()) {
        disk.take(step)
        if (step.type !== 'begin' || step.operation.kind !== 'sync') continue // most is written, and not durable yet
        const dir = join(tempDir(), 'state')
        mkdirSync(dir)
        materialize(imageWith(disk, survives), program.root, dir)
        const store = openEventStore({ dir })
        const [head, remembered] = [await store.head(), await store.remembered()]
        await store.close()
        assert.is(Number(head), events, `step ${at}`)
        assert.is(remembered, head, `step ${at}: ${Number(remembered) - events} events seem to be lost`)
      }
    })

  twoCuts.run()
}
