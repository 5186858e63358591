import * as assert from 'uvu/assert'
import { type Message, messagesOf } from '../../src/client/serverSentEvents.ts'
import { suite } from '../support/suite.ts'

const inChunks = (text: string, size: number): AsyncIterable<Uint8Array> => {
  const bytes = new TextEncoder().encode(text)
  return (async function* () {
    for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
  })()
}

const read = (text: string, size = text.length): Promise<Message[]> =>
  Array.fromAsync(messagesOf(inChunks(text, size)))

const TEXT =
  'retry: 2000\nid: 1\nevent: run:start\ndata: {"a":"ä😀"}\n\n:hb\n\nid: 2\nevent: run:stop\ndata: {}\n\n'
const EVENTS: readonly Message[] = [
  { id: '1', event: 'run:start', data: '{"a":"ä😀"}' },
  { id: '2', event: 'run:stop', data: '{}' },
]

const reading = suite('reading server-sent events')

reading('yields the same events, however the bytes are split', async () => {
  for (let size = 1; size <= 40; size++) assert.equal(await read(TEXT, size), EVENTS, `chunks of ${size}`)
})

reading('accepts every line break, also when it is split', async () => {
  for (const end of ['\r\n', '\r']) {
    const text = `${TEXT.replaceAll('\n', end)}:end${end}`
    for (let size = 1; size <= 12; size++)
      assert.equal(await read(text, size), EVENTS, JSON.stringify([end, size]))
  }
})

reading('leaves out an event that is cut off, because the reader resumes before it', async () => {
  const first = TEXT.indexOf('\n\n') + 2
  for (let length = 1; length < first; length++)
    assert.equal(await read(TEXT.slice(0, length)), [], `${length}`)
})

reading('joins the lines of data, and knows an event without a name', async () => {
  assert.equal(await read('data: a\ndata:b\ndata\n\n'), [{ id: '', event: 'message', data: 'a\nb\n' }])
})

reading('leaves out a block without data', async () => {
  assert.equal(await read('id: 7\n\nid: 8\nevent: a\ndata: 1\n\n'), [{ id: '8', event: 'a', data: '1' }])
})

reading('refuses a block without an end, which would fill the memory', async () => {
  const endless = (async function* () {
    for (;;) yield new TextEncoder().encode(`data: ${'x'.repeat(1 << 20)}\n`)
  })()
  try {
    await Array.fromAsync(messagesOf(endless))
    assert.unreachable()
  } catch (error) {
    assert.instance(error, RangeError)
  }
})

reading.run()
