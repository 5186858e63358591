import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

const HOUR_MS = 3_600_000
const shiftedClock = new URL('../fixtures/shiftedClock.ts', import.meta.url).href
const CODE = `
const times = () => console.log(JSON.stringify([Date.now(), new Date().getTime(), Date.parse(new Date().toISOString())]))
setInterval(() => {}, 1000)
process.on('SIGUSR2', () => { times(); process.exit() })
times()`

const clock = suite('the clock of a node in a soak')

clock('jumps in each of its forms while the process runs', async () => {
  const file = join(tempDir(), 'clock')
  writeFileSync(file, '0')
  const child = spawn(process.execPath, ['--import', shiftedClock, '--eval', CODE], {
    env: { SVC_TEST_CLOCK: file },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text
    if (child.killed) return
    writeFileSync(file, String(HOUR_MS))
    child.kill('SIGUSR2')
  })
  await once(child, 'close')
  const [before, after] = output
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as number[])
  assert.is(before?.length, 3)
  for (const [n, time] of (before ?? []).entries()) assert.ok((after?.[n] ?? 0) - time >= HOUR_MS - 1)
})
clock.run()
