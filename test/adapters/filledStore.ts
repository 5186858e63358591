import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { openEventStore } from '../../src/adapters/embedded/eventStore/index.ts'
import { facts } from '../contracts/eventStore/facts.ts'
import { tempDir } from '../support/tempDir.ts'

const ROWS = 10
export const PER_ROW = 64
export const COUNT = ROWS * PER_ROW

/** A closed store with one stream of `COUNT` events, whose only file is `log.db`. */
export const filled = async (): Promise<string> => {
  const dir = tempDir()
  const store = openEventStore({ dir })
  for (let row = 0; row < ROWS; row++)
    await store.append('one', facts('env', PER_ROW, row * PER_ROW), row === 0 ? 'none' : row * PER_ROW - 1)
  await store.close()
  return dir
}

export const editIndex = (dir: string, sql: string): void => {
  const db = new DatabaseSync(join(dir, 'index.db'))
  db.exec(sql)
  db.close()
}
