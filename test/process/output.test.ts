import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, openSync, closeSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import * as assert from 'uvu/assert'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

const program = fileURLToPath(new URL('../fixtures/output/writeLines.ts', import.meta.url))

/** Starts a process that writes lines; its standard error has what it reports. */
const writing = (lines: number, end: 'exits' | 'dies' | 'waits') =>
  spawn(process.execPath, [program, String(lines), end])

/** The same with a file as its output; resolves when it has ended. */
const writingTo = (file: number, lines: number) =>
  once(
    spawn(process.execPath, [program, String(lines), 'exits'], { stdio: ['ignore', file, 'ignore'] }),
    'exit',
  )

const numbersIn = (printed: string): number[] =>
  [...printed.matchAll(/^line (\d+) x*$/gm)].map(([, number]) => Number(number))

const output = suite('standard output', { timeoutMs: 60_000 })

output('loses no line of a process that is killed', async () => {
  const lines = 50 // a socket has room for them, although the reader is late
  const child = writing(lines, 'dies')
  assert.equal(
    numbersIn(await text(child.stdout)),
    Array.from({ length: lines }, (_, number) => number),
  )
})

output('never waits for a reader that does not read, and reports what it dropped', async () => {
  const child = writing(30_000, 'waits') // 3 MB: more than the pipe and the memory for lines
  const [written] = (await once(child.stderr, 'data')) as [Buffer] // although nobody has read anything
  assert.match(written.toString(), 'written')
  const printed = text(child.stdout)
  const [dropped] = (await once(child.stderr, 'data')) as [Buffer]
  child.stdin.end()
  const numbers = numbersIn(await printed)
  assert.equal(
    numbers,
    numbers.map((_, index) => index),
  ) // the first ones, whole and in order
  assert.is(Number(/dropped (\d+)/.exec(dropped.toString())?.[1]), 30_000 - numbers.length)
})

output('ends the process neither when its reader leaves nor when the disk is full', async () => {
  const child = writing(30_000, 'exits')
  child.stdout.destroy()
  assert.equal(await once(child, 'exit'), [0, null])
  const full = openSync('/dev/full', 'w')
  assert.equal(await writingTo(full, 10), [0, null])
  closeSync(full)
})

output('is whole in a file', async () => {
  const file = join(tempDir(), 'log')
  const opened = openSync(file, 'w')
  await writingTo(opened, 5000)
  closeSync(opened)
  assert.is(numbersIn(readFileSync(file, 'utf8')).length, 5000)
})

output.run()
