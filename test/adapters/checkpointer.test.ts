import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import * as assert from 'uvu/assert'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

const CHECKPOINTER = import.meta.resolve('../../src/adapters/embedded/checkpointer.ts')

/** Prints the size of the database after the thread has moved a WAL of a million bytes. */
const program = (file: string): string => `
  import { statSync } from 'node:fs'
  import { DatabaseSync } from 'node:sqlite'
  import { openCheckpointer } from ${JSON.stringify(CHECKPOINTER)}
  const file = ${JSON.stringify(file)}
  const db = new DatabaseSync(file)
  db.exec('PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0; CREATE TABLE t (x)')
  db.prepare('INSERT INTO t VALUES (?)').run('x'.repeat(1_000_000))
  const checkpointer = openCheckpointer()
  const alive = setInterval(() => {}, 60_000)
  await checkpointer.move(file)
  console.log(statSync(file).size)
  await checkpointer.close()
  clearInterval(alive)
`

/** A module that an operator loads before the service, such as an agent for traces. It keeps 32 MB. */
const preloaded = 'data:text/javascript,globalThis.kept=Array.from({length:4e6},(_,i)=>i+.5)'

const thread = suite('the thread that moves WALs')

thread('needs no memory for the modules that an operator preloads into the service', async () => {
  const { stdout, stderr } = await promisify(execFile)(
    process.execPath,
    ['--import', preloaded, '--input-type=module', '--eval', program(join(tempDir(), 'some.db'))],
    { env: { ...process.env, NODE_OPTIONS: `--import ${preloaded}` } },
  )
  assert.ok(Number(stdout) > 1_000_000, `bytes in the database: ${stdout}`)
  assert.is(stderr, '')
})

/** Prints whether a WAL was moved after syncs of a WAL that is missing and of one that is present. */
const syncing = (folder: string): string => `
  import { DatabaseSync } from 'node:sqlite'
  import { openCheckpointer } from ${JSON.stringify(CHECKPOINTER)}
  const file = ${JSON.stringify(join(folder, 'some.db'))}
  const db = new DatabaseSync(file)
  db.exec('PRAGMA journal_mode=WAL; CREATE TABLE t (x)')
  const checkpointer = openCheckpointer()
  const alive = setInterval(() => {}, 60_000)
  checkpointer.sync(file + '.missing')
  checkpointer.sync(file)
  await checkpointer.move(file)
  console.log('moved')
  await checkpointer.close()
  clearInterval(alive)
`

thread('moves a WAL after a sync, also after one that failed', async () => {
  const folder = tempDir()
  const program = ['--input-type=module', '--eval', syncing(folder)]
  const { stdout, stderr } = await promisify(execFile)(process.execPath, program)
  assert.is(stdout, 'moved\n')
  assert.is(stderr, '')
})

/** Refuses each thread, as Node does where the limit of the system is reached; two moves are asked for all the same. */
const withoutThreads = `
  import { syncBuiltinESMExports } from 'node:module'
  import workerThreads from 'node:worker_threads'
  workerThreads.Worker = class {
    constructor() { throw Object.assign(new Error('no thread'), { code: 'ERR_WORKER_INIT_FAILED' }) }
  }
  syncBuiltinESMExports()
  const { openCheckpointer } = await import(${JSON.stringify(CHECKPOINTER)})
  const checkpointer = openCheckpointer()
  for (let moves = 0; moves < 2; moves++) void checkpointer.move('some.db').then(() => console.log('moved'))
  await checkpointer.close()
`

thread('that the system refuses leaves its work to the writers, with one warning', async () => {
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [
    '--input-type=module',
    '--eval',
    withoutThreads,
  ])
  assert.is(stdout, 'moved\nmoved\n')
  assert.equal(stderr.match(/Warning: .*: no thread\n/g)?.length, 1)
})

thread.run()
