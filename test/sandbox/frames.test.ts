import * as assert from 'uvu/assert'
import { frameReader, frameWriter, isShallow, MAX_FRAME } from '../../src/sandbox/frames.ts'
import { parseChildFrame, parseLargeChildFrame } from '../../src/sandbox/protocol.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

const framed = async (texts: readonly string[]): Promise<Buffer> => {
  const written: Buffer[] = []
  const writer = frameWriter((bytes) => written.push(bytes))
  for (const text of texts) writer.send(text)
  await until(() => written.length > 0)
  assert.is(written.length, 1) // one write for all of them
  return Buffer.concat(written)
}

const frames = suite('frames')

frames('are read correctly however the stream is split', async () => {
  const texts = ['{}', '"ünï☃"', `"${'x'.repeat(3000)}"`, '1', '""']
  const bytes = await framed(texts)
  for (const size of [1, 2, 3, 5, 7, 64, 1000, bytes.length]) {
    const got: string[] = []
    const read = frameReader((json) => got.push(json))
    for (let at = 0; at < bytes.length; at += size) read(bytes.subarray(at, at + size))
    assert.equal(got, texts)
  }
})

frames('may be as large as the cap and no larger', () => {
  const writer = frameWriter(() => {})
  writer.send('x'.repeat(MAX_FRAME))
  assert.throws(() => writer.send('x'.repeat(MAX_FRAME + 1)), /at most 8388608 bytes/)
})

frames('over the cap are refused before they are buffered', () => {
  const header = Buffer.alloc(4)
  header.writeUInt32BE(MAX_FRAME + 1)
  assert.throws(() => frameReader(() => {})(header), /at most 8388608 bytes, got 8388609/)
})

frames('need little more memory than their bytes while they arrive one by one', () => {
  const header = Buffer.alloc(4)
  header.writeUInt32BE(MAX_FRAME)
  const read = frameReader(() => {})
  read(header)
  const before = process.memoryUsage().heapUsed
  for (let n = 0; n < 2_000_000; n++) read(Buffer.from(' '))
  assert.ok(process.memoryUsage().heapUsed - before < 100 << 20)
})

frames('may nest 1000 levels deep, not counting brackets in strings', () => {
  const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
  assert.ok(isShallow(nested(1000)))
  assert.not.ok(isShallow(nested(1001)))
  assert.ok(isShallow(`[${'['.repeat(999)}${']'.repeat(999)},${nested(999)}]`)) // siblings do not add up
  assert.ok(isShallow(JSON.stringify(`\\"${'['.repeat(5000)}`)))
  assert.not.ok(isShallow(`["\\"",${nested(1000)}]`))
})

frames.run()

const child = suite('a frame of a child')

const refused = [
  'null',
  '[]',
  '"ready"',
  '{"type":"result"}',
  '{"type":"result","id":-1}',
  '{"type":"result","id":1.5}',
  '{"type":"failure","id":1,"code":"timeout","message":"x"}',
  '{"type":"failure","id":1,"code":"function_failed"}',
  '{"type":"log","id":1,"source":"stdin","text":"x"}',
  '{"type":"pong","n":1,"leftover":0}',
  '{"type":"pong","n":1,"rss":1}',
  '{"type":"host","id":1,"call":0}',
  '{"type":"host","id":1,"call":0,"request":{"op":"shutdown"}}',
  '{"type":"host","id":1,"call":0,"request":{"op":"call","fn":"a/b","args":{}}}',
  '{"type":"host","id":1,"call":0,"request":{"op":"files","action":"chmod","params":{}}}',
  '{"type":"module","ns":"a","file":"a.js","functions":[1]}',
  '{"type":"__proto__"}',
]
for (const json of refused)
  child(`is not ${json}`, () => assert.throws(() => parseChildFrame(json), /^Expected/))

child('contains only the known fields', () => {
  const json = '{"type":"host","id":1,"call":0,"request":{"op":"context","key":"K","extra":1},"more":2}'
  assert.equal(parseChildFrame(json), { type: 'host', id: 1, call: 0, request: { op: 'context', key: 'K' } })
})

child('has members of up to 1000 levels, whatever its size is', () => {
  const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
  const large = `"${'x'.repeat(100_000)}"`
  const result = (value: string) => `{"type":"result","id":1,"value":${value}}`
  const parseLarge = (json: string) => parseLargeChildFrame(Buffer.from(json))
  assert.ok(parseChildFrame(result(nested(1000))))
  assert.ok(parseLarge(result(`[${large},${nested(999)}]`)))
  assert.throws(() => parseChildFrame(result(nested(1001))), /at most 1000 levels/)
  assert.throws(() => parseLarge(result(`[${large},${nested(1000)}]`)), /valid JSON/)
})

child.run()
