import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { exportAudit, type Exported, verifyExport } from '../../src/cli/auditFile.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

const dir = tempDir()
let files = 0
const newFile = (): string => join(dir, `export-${files++}.jsonl`)

async function* changes(count: number) {
  for (let n = 0; n < count; n++)
    yield { position: String(n), type: 'ProjectRenamed', data: { name: `nämé "${n}"` } }
}
const exported = (count: number): Promise<Exported> =>
  exportAudit(newFile(), { filters: {} }, changes(count), () => {})

const { file: intact, hash } = await exported(3)
const text = readFileSync(intact, 'utf8')
const lines = text.split('\n').slice(0, -1)

/** The verdict on a file with this content. */
const verdict = async (content: string | Buffer, expected?: string) => {
  const file = newFile()
  writeFileSync(file, content)
  return verifyExport(file, expected)
}
const lineOf = async (content: string | Buffer): Promise<number | null> => {
  const result = await verdict(content)
  return result.ok ? null : result.line
}
const joined = (parts: readonly string[]): string => parts.map((line) => `${line}\n`).join('')
/** A line with another content and the right hash of itself. */
const forged = (line: string, change: (body: string) => string): string => {
  const body = change(line.slice(0, line.lastIndexOf(',"hash":')))
  return `${body},"hash":"${createHash('sha256').update(body).digest('hex')}"}`
}

const file = suite('an exported audit')

file('has a first line, each change, and a closing line', async () => {
  assert.is(lines.length, 5)
  assert.equal(await verifyExport(intact), { ok: true, facts: 3, hash })
  assert.equal(await verifyExport(intact, hash), { ok: true, facts: 3, hash })
  const empty = await exported(0)
  assert.equal(await verifyExport(empty.file), { ok: true, facts: 0, hash: empty.hash })
})

file('with one changed byte is detected, at any place, and its line is named', async () => {
  const bytes = Buffer.from(text)
  let line = 1
  for (let at = 0; at < bytes.length; at++) {
    const changed = Buffer.from(bytes)
    changed.writeUInt8((bytes[at] ?? 0) ^ 1, at)
    assert.is(await lineOf(changed), line, `byte ${at}: ${text.slice(at, at + 20)}`)
    if (bytes[at] === 0x0a) line++
  }
})

file('with a line that no export has is detected before the line is read to its end', async () => {
  const reason = 'the line was changed: it is not a line of an export'
  const long = Buffer.concat([Buffer.from(joined(lines.slice(0, 2))), Buffer.alloc(17 << 20)])
  assert.equal(await verdict(long), { ok: false, line: 3, reason })
})

file('that was cut is detected, at any place', async () => {
  const bytes = Buffer.from(text)
  for (let end = 0; end < bytes.length; end++) {
    const kept = bytes.subarray(0, end)
    const complete = kept.filter((byte) => byte === 0x0a).length
    assert.is(await lineOf(kept), complete + 1, `${end} bytes`)
  }
})

file('without one of its lines is detected, and the place is named', async () => {
  for (const n of lines.keys()) assert.is(await lineOf(joined(lines.toSpliced(n, 1))), n + 1, `line ${n + 1}`)
})

file('with two lines exchanged, repeated or added is detected', async () => {
  for (let n = 0; n + 1 < lines.length; n++) {
    const [first = '', second = ''] = lines.slice(n, n + 2)
    assert.is(await lineOf(joined(lines.toSpliced(n, 2, second, first))), n + 1)
    assert.is(await lineOf(joined(lines.toSpliced(n, 0, first))), n + 2)
  }
  assert.is(await lineOf(`${text}\n`), 6)
  assert.is(await lineOf(`${text}{}\n`), 6)
  assert.is(await lineOf(text.replaceAll('\n', '\r\n')), 1)
})

file('with a line that was replaced together with its hash is detected', async () => {
  for (const n of lines.keys()) {
    const other = forged(lines[n] ?? '', (body) => body.replace(/"(type|format|changes)":"?/, '$&0'))
    const line = await lineOf(joined(lines.with(n, other)))
    if (n < lines.length - 1) assert.is(line, n + 1)
    else assert.is(line, 5) // the closing line has a number that is not that of the changes
  }
})

file('that was written again as a whole is detected by the hash of the first one', async () => {
  const other = await exported(2)
  assert.ok((await verifyExport(other.file)).ok)
  const result = await verifyExport(other.file, hash)
  assert.equal([result.ok, !result.ok && result.line], [false, 4])
})

file('is not written over another file, and leaves none behind when it fails', async () => {
  const before = readFileSync(intact, 'utf8')
  const error = await exportAudit(intact, {}, changes(1), () => {}).then(
    () => null,
    (refusal: Error) => refusal.message,
  )
  assert.match(error ?? '', /exists already: remove it, or name another file/)
  let isRead = false
  const unread = async function* () {
    isRead = true
    yield { n: 1 }
    await Promise.resolve()
  }
  await exportAudit(intact, {}, unread(), () => {}).catch(() => {})
  assert.not.ok(isRead, 'an existing file is refused before the audit is read')
  assert.is(readFileSync(intact, 'utf8'), before)
  const failing = async function* () {
    yield { n: 1 }
    throw new Error('lost')
  }
  const cut = newFile()
  assert.is(await exportAudit(cut, {}, failing(), () => {}).catch((error: Error) => error.message), 'lost')
  assert.not.ok(existsSync(cut))
  assert.equal(
    readdirSync(dir).filter((name) => name.endsWith('.part')),
    [],
  )
})

file('that cannot be read or written is named', async () => {
  const missing = join(dir, 'none', 'file')
  const messageOf = (work: Promise<unknown>) =>
    work.then(
      () => '',
      (error: Error) => error.message,
    )
  assert.match(await messageOf(verifyExport(missing)), `${missing}: cannot be read (ENOENT)`)
  assert.match(await messageOf(exportAudit(missing, {}, changes(0), () => {})), `cannot write ${missing}`)
})

file('of something else is not one', async () => {
  assert.is(await lineOf('{"a":1}\n'), 1)
  assert.is(await lineOf(''), 1)
  assert.is(await lineOf(Buffer.from([0xff, 0x0a])), 1)
})
file.run()
