import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import * as assert from 'uvu/assert'
import { lockDataDir } from '../../src/process/dataDir.ts'
import { isAppError } from '../../src/errors.ts'
import { hasEnded } from '../support/hasEnded.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

const spawned: ChildProcess[] = []
process.on('exit', () => spawned.forEach((child) => child.kill('SIGKILL')))

const script = fileURLToPath(new URL('../fixtures/eventStore/lockDir.ts', import.meta.url))

/** A process that takes the directory, and what it said about it. */
const starter = async (dir: string): Promise<{ child: ChildProcess; said: string }> => {
  const child = spawn(process.execPath, [script, dir], { stdio: ['ignore', 'pipe', 'inherit'] })
  spawned.push(child)
  const [chunk] = (await once(child.stdout, 'data')) as [Buffer]
  return { child, said: chunk.toString().trim() }
}
const end = async (child: ChildProcess) => {
  if (hasEnded(child)) return
  const closed = once(child, 'close')
  child.kill('SIGKILL')
  await closed
}
const refusalOf = (dir: string): string => {
  try {
    lockDataDir(dir)()
  } catch (error) {
    if (isAppError(error, 'unavailable')) return error.message
    throw error
  }
  return 'locked'
}

const lock = suite('the lock on a data directory')

lock('refuses a second process, and names the first one and the remedy', async () => {
  const dir = tempDir()
  const { child, said } = await starter(dir)
  assert.is(said, 'locked')
  const refusal = refusalOf(dir)
  assert.match(refusal, `process ${child.pid}`)
  assert.match(refusal, 'SVC_DATA_DIR')
  await end(child)
  assert.is(refusalOf(dir), 'locked')
})

lock('refuses a second service in the same process, until the first released it', () => {
  const dir = tempDir()
  const release = lockDataDir(dir)
  assert.match(refusalOf(dir), 'in use')
  release()
  assert.is(refusalOf(dir), 'locked')
})

lock('is taken over when its owner died, even if another process has its process id now', () => {
  const dir = tempDir()
  writeFileSync(join(dir, 'lock'), String(process.ppid)) // alive, and not one of ours: as after a reboot
  assert.is(refusalOf(dir), 'locked')
  writeFileSync(join(dir, 'lock'), '')
  assert.is(refusalOf(dir), 'locked')
})

lock('is acquired by one of many simultaneous starts, also after a crash', async () => {
  const dir = tempDir()
  for (let round = 0; round < 3; round++) {
    const starters = await Promise.all(Array.from({ length: 6 }, () => starter(dir)))
    for (const { child } of starters) await end(child) // the winner dies without releasing it
    const said = starters.map((starter) => starter.said)
    assert.is(said.filter((one) => one === 'locked').length, 1, said.join('\n'))
  }
})

lock('names the directory that it cannot create', () => {
  const dir = join(tempDir(), 'file')
  writeFileSync(dir, '')
  assert.match(refusalOf(join(dir, 'data')), join(dir, 'data'))
})
lock.run()
