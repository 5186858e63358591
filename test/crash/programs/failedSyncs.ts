import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { openEventStore } from '../../../src/adapters/embedded/eventStore/index.ts'
import { facts } from '../../contracts/eventStore/facts.ts'

/** Appends so many facts each time, and copies the log as a crash leaves it. Prints the positions of the log before and after. */
const [, , root = '', ...counts] = process.argv
const store = openEventStore({ dir: root })
const heads = [await store.head()]
for (const [n, count] of counts.entries())
  await store.append(`stream-${n}`, facts('env', Number(count)), 'none').catch(() => {})
heads.push(await store.head())
for (const name of ['log.db', 'log.db-wal']) cpSync(join(root, name), join(root, 'copy', name))
process.stdout.write(heads.map(Number).join(' '))
process.exit() // without the checkpoint of a stop
