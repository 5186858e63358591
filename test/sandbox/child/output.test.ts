import * as assert from 'uvu/assert'
import { MAX_LINE } from '../../../src/sandbox/frames.ts'
import { captureOutput } from '../../../src/sandbox/child/capturedOutput.ts'
import { LineCutter } from '../../../src/sandbox/child/output.ts'
import { type CutLines, GivenValues } from '../../../src/sandbox/givenValues.ts'
import type { Intake } from '../../../src/sandbox/intake.ts'
import { suite } from '../../support/suite.ts'

const TEXT = 'Größe, 数, €, 😀'

/** The lines of what `write` writes, of which at most `bytes` are kept. */
const linesOf = (write: (cutter: LineCutter) => void, bytes = 1 << 20): string[] => {
  const lines: string[] = []
  const cutter = new LineCutter(bytes, (_, line) => lines.push(line))
  write(cutter)
  cutter.end()
  return lines
}

/** A run that has printed nothing yet, with its lines. */
const runWith = (lines: string[]) => ({
  ended: false,
  output: new LineCutter(1 << 20, (_, line) => lines.push(line)),
})

/** Gives the run of the moment what is written to the streams of this process meanwhile. */
const captured = (runOfContext: Parameters<typeof captureOutput>[0], write: () => void): void => {
  const { console } = globalThis
  const streams = (['stdout', 'stderr'] as const).map(
    (source) => [source, Object.getOwnPropertyDescriptor(process, source) ?? {}] as const,
  )
  captureOutput(runOfContext, (text) => text)
  try {
    write()
  } finally {
    globalThis.console = console
    for (const [source, own] of streams) Object.defineProperty(process, source, own)
  }
}

const output = suite('the output of a run')

output('has each letter whose bytes were written one by one', () => {
  const lines = linesOf((cutter) => {
    for (const byte of Buffer.from(`${TEXT}\n`))
      for (const source of ['stdout', 'stderr'] as const)
        cutter.write(source, cutter.textOf(source, Buffer.of(byte)))
  })
  assert.equal(lines, [TEXT, TEXT])
})

output('shows a letter that was not written to its end as U+FFFD, before what follows', () => {
  const half = Buffer.from('€').subarray(0, 2)
  const lines = linesOf((cutter) => {
    cutter.write('stdout', cutter.textOf('stdout', half))
    cutter.write('stdout', cutter.textOf('stdout', 'a\n'))
    cutter.write('stdout', cutter.textOf('stdout', half))
  })
  assert.equal(lines, ['\ufffda', '\ufffd'])
})

output('is cut between two characters', () => {
  for (const before of [MAX_LINE - 1, MAX_LINE - 2]) {
    const line = `${'x'.repeat(before)}😀${'y'.repeat(MAX_LINE)}`
    for (const end of ['\n', '']) {
      const pieces = linesOf((cutter) => cutter.write('stdout', line + end))
      assert.is(pieces.join(''), line)
      for (const piece of pieces) assert.ok(piece.isWellFormed() && piece.length <= MAX_LINE)
    }
  }
  assert.equal(
    linesOf((cutter) => cutter.write('stdout', 'x😀y'), 2),
    ['x', '… more output was cut off'],
  )
})

output('is text, also if the function writes bytes or another encoding', () => {
  const lines = linesOf((cutter) =>
    captured(
      () => ({ ended: false, output: cutter }),
      () => {
        for (const byte of Buffer.from(`${TEXT}\n`)) process.stdout.write(Buffer.of(byte))
        process.stdout.write('8J+YgA==', 'base64')
        console.error(TEXT)
      },
    ),
  )
  assert.equal(lines, [TEXT, TEXT, '😀'])
})

output('has the groups and counters of its run only', () => {
  const all: string[][] = [[], [], []]
  const [first, second, third] = all.map(runWith)
  let run: typeof first
  captured(
    () => run,
    () => {
      console.group() // in a module that loads
      run = first
      console.group('a')
      console.count('n')
      console.log('b')
      run = second
      console.log('c')
      console.count('n')
      run = third
      console.table('d')
      console.groupEnd()
      console.log('e')
      run = first
      console.groupEnd()
      console.warn('f')
      run = { ...runWith([]), ended: true }
      console.group()
      run = second
      console.log('g')
    },
  )
  assert.equal(all, [
    ['a', '  n: 1', '  b', 'f'],
    ['c', 'n: 1', 'g'],
    ['d', 'e'],
  ])
})

output('continues after a run that closed its streams', async () => {
  const all: string[][] = [[], []]
  const [first, second] = all.map(runWith)
  let run = first
  let called = 0
  captured(
    () => run,
    () => {
      for (const stream of [process.stdout, process.stderr]) {
        stream.setDefaultEncoding('hex')
        stream.cork()
        stream.end('last\n', () => called++)
        stream.end()
        stream.destroy()
        stream.write('more\n')
      }
      run = second
      console.log('out')
      console.error('err')
    },
  )
  await new Promise((resolve) => process.nextTick(resolve))
  assert.equal(all, [
    ['last', 'more', 'last', 'more'],
    ['out', 'err'],
  ])
  assert.is(called, 2)
})

output('contains no part of a secret in which a line was cut', () => {
  const secret = 'top-😀-secret'
  for (const before of [MAX_LINE - 4, MAX_LINE - 5, MAX_LINE - 6]) {
    const given = new GivenValues({ charge() {} } as unknown as Intake)
    assert.ok(given.add(secret))
    const cut: CutLines = {}
    const shown = linesOf((cutter) => cutter.write('stdout', `${'x'.repeat(before)}${secret}\n`))
      .map((text) => given.inOutput({ source: 'stdout', text }, cut))
      .join('')
    assert.match(shown, /^x+\*+$/, String(before))
  }
})

output.run()
