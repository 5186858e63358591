import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { childRecorder, endLeftoverChildren } from '../../src/process/leftoverChildren.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

const leftovers = suite('children that a dead service left')

/** A process like a child: the leader of its group. */
const started = () => {
  const child = spawn('sleep', ['600'], { detached: true, stdio: 'ignore' })
  return { child, pid: child.pid ?? 0, ended: once(child, 'exit') }
}

leftovers('are ended by the next service on the data directory', async () => {
  const dataDir = tempDir()
  assert.is(endLeftoverChildren(dataDir), 0)
  const { child, pid, ended } = started()
  childRecorder(dataDir)(pid)
  assert.is(endLeftoverChildren(dataDir), 1)
  await ended
  assert.is(child.signalCode, 'SIGKILL')
  assert.is(endLeftoverChildren(dataDir), 0)
})

leftovers('are ended also when only their first process has died', async () => {
  const dataDir = tempDir()
  endLeftoverChildren(dataDir)
  const child = spawn('sh', ['-c', 'sleep 600 & echo $!; wait'], {
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const [second] = (await once(child.stdout, 'data')) as [Buffer]
  childRecorder(dataDir)(child.pid ?? 0)
  child.kill('SIGKILL')
  await once(child, 'exit')
  assert.ok(existsSync(`/proc/${Number(second)}`))
  assert.is(endLeftoverChildren(dataDir), 1)
  await once(child.stdout, 'end') // the pipe closes with its last process
})

leftovers('are not confused with a later process of the same id', async () => {
  const dataDir = tempDir()
  endLeftoverChildren(dataDir)
  const { child, pid, ended } = started()
  childRecorder(dataDir)(pid)
  const file = join(dataDir, 'children', String(pid))
  writeFileSync(file, readFileSync(file, 'utf8').replace(/\d+$/, '1'))
  assert.is(endLeftoverChildren(dataDir), 0)
  assert.is(child.signalCode, null)
  child.kill()
  await ended
})

for (const [what, boot] of [
  ['of an earlier boot', '0e6a2a5c-7f0e-4d59-9f7b-0a3d3c1f2b11 '],
  ['whose boot an earlier version did not record', ''],
] as const)
  leftovers(`${what} are not looked for, because boots resemble each other`, async () => {
    const dataDir = tempDir()
    endLeftoverChildren(dataDir)
    const { child, pid, ended } = started()
    childRecorder(dataDir)(pid)
    const file = join(dataDir, 'children', String(pid))
    writeFileSync(file, readFileSync(file, 'utf8').replace(/^.* |^/, boot))
    assert.is(endLeftoverChildren(dataDir), 0)
    assert.is(child.signalCode, null)
    assert.not(existsSync(file))
    child.kill()
    await ended
  })

leftovers('are forgotten when they have ended', async () => {
  const dataDir = tempDir()
  endLeftoverChildren(dataDir)
  const { child, pid, ended } = started()
  const forget = childRecorder(dataDir)(pid)
  assert.ok(existsSync(join(dataDir, 'children', String(pid))))
  child.kill()
  await ended
  forget()
  assert.not.ok(existsSync(join(dataDir, 'children', String(pid))))
})

leftovers.run()
