import { PassThrough } from 'node:stream'
import * as assert from 'uvu/assert'
import { openTerminal } from '../../src/cli/terminal.ts'
import { suite } from '../support/suite.ts'

/** A process whose streams are terminals of 40 columns, or are not. */
const processWith = ({ isTTY }: { readonly isTTY: boolean }) => {
  const stream = () => Object.assign(new PassThrough(), isTTY ? { isTTY, columns: 40 } : {})
  return { stdin: stream(), stdout: stream(), stderr: stream() }
}

/** Everything that was written to a stream. */
const writtenTo = (stream: PassThrough): string => {
  let text = ''
  for (let chunk: unknown = stream.read(); chunk !== null; chunk = stream.read()) text += String(chunk)
  return text
}

const open = (streams: ReturnType<typeof processWith>, signal = new AbortController().signal) =>
  openTerminal(streams as unknown as NodeJS.Process, signal)

const test = suite('the terminal of svc')

test('asks a person', async () => {
  const streams = processWith({ isTTY: true })
  const { ask, columns, progressColumns } = open(streams)
  assert.equal([columns, progressColumns], [40, 40])
  const answered = ask?.('Sure? ', new AbortController().signal)
  streams.stdin.write('yes\nmore\n')
  assert.is(await answered, 'yes')
  assert.is(writtenTo(streams.stderr), 'Sure? ')
})

test('takes the end of the input as no answer', async () => {
  const streams = processWith({ isTTY: true })
  const answered = open(streams).ask?.('Sure? ', new AbortController().signal)
  streams.stdin.end()
  assert.is(await answered, '')
  assert.is(writtenTo(streams.stderr), 'Sure? \n')
})

test('stops asking when it is interrupted', async () => {
  const interrupted = new AbortController()
  const answered = open(processWith({ isTTY: true })).ask?.('Sure? ', interrupted.signal)
  interrupted.abort()
  assert.is(await answered?.catch(() => 'rejected'), 'rejected')
})

test('asks for a secret without showing it, and restores the terminal', async () => {
  const streams = processWith({ isTTY: true })
  const modes: boolean[] = []
  Object.assign(streams.stdin, { setRawMode: (isRaw: boolean) => modes.push(isRaw) })
  const answered = open(streams).askHidden?.('Key: ', new AbortController().signal)
  streams.stdin.write('sex')
  streams.stdin.write('\x7fcret\r')
  assert.is(await answered, 'secret')
  assert.is(writtenTo(streams.stderr), 'Key: \n')
  assert.equal(modes, [true, false])
})

test('restores the terminal when a secret is interrupted', async () => {
  const streams = processWith({ isTTY: true })
  const modes: boolean[] = []
  Object.assign(streams.stdin, { setRawMode: (isRaw: boolean) => modes.push(isRaw) })
  const interrupted = new AbortController()
  const answered = open(streams).askHidden?.('Key: ', interrupted.signal)
  interrupted.abort()
  assert.is(await answered?.catch(() => 'rejected'), 'rejected')
  assert.equal(modes, [true, false])
})

test('colours a text only where the result is shown with colours', () => {
  const [shown, piped] = [processWith({ isTTY: true }), processWith({ isTTY: false })]
  Object.assign(shown.stdout, { hasColors: () => true })
  assert.is(open(shown).paint('red', 'x'), '\x1b[31mx\x1b[39m')
  assert.is(open(piped).paint('red', 'x'), 'x')
  Object.assign(shown.stdout, { hasColors: () => false })
  assert.is(open(shown).paint('red', 'x'), 'x')
})

test('reads the standard input to its end', async () => {
  const streams = processWith({ isTTY: false })
  const read = open(streams).input(new AbortController().signal)
  for (const part of [Buffer.from('"\u00e4').subarray(0, 2), Buffer.from('\u00e4"').subarray(1)])
    streams.stdin.write(part)
  streams.stdin.end()
  assert.is(await read, '"\u00e4"')
})

test('asks nobody in a pipe, and does not cut what it writes', () => {
  const { ask, columns, progressColumns } = open(processWith({ isTTY: false }))
  assert.equal([ask, columns, progressColumns], [null, Infinity, null])
})

test('continues while nobody reads its errors', () => {
  const streams = processWith({ isTTY: false })
  open(streams)
  assert.ok(streams.stderr.emit('error', new Error('EPIPE')))
})

test('waits for a slow reader', async () => {
  const streams = processWith({ isTTY: false })
  const { out } = open(streams)
  let isWritten = false
  const written = out('x'.repeat(1 << 20)).then(() => (isWritten = true))
  await Promise.resolve()
  assert.not(isWritten)
  streams.stdout.resume()
  await written
})
test.run()
