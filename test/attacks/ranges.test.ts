import { newId } from '../../src/ids.ts'
import type { Api } from '../support/http.ts'
import { type Attack, attackSuite } from './attack.ts'
import { cpuSecondsOf } from './cpu.ts'

const SIZE = 100_000

const RANGES = [
  'bytes=0-9',
  'bytes=0-0,1-1',
  `bytes=${'0-,'.repeat(1000)}0-`,
  'bytes=-5',
  'bytes=-0',
  'bytes=5-1',
  'bytes=999999999999999999-',
  'bytes=0-9999999999999999999',
  'bytes=-99999999999999999999',
  'bytes=1e3-2e3',
  'bytes= 0-1',
  'items=0-1',
  'bytes=0x0-0xf',
]

const stored = async (api: Api, content: string): Promise<string> => {
  const { json, text } = await api.send('PUT', `/files/upload/${newId()}`, { body: content })
  const { data } = (json ?? {}) as { data?: { file_id: string } }
  if (!data) throw new Error(`Expected the file to be stored, got ${text}`)
  return data.file_id
}

/** Names and values that patterns could need long for, as requests. */
const PATTERNS: readonly (readonly [string, string, { body?: unknown; headers?: Record<string, string> }])[] =
  [
    ['POST', '/domains', { body: { domain: `${'a-'.repeat(5000)}!` } }],
    ['POST', '/domains', { body: { domain: `${'a.'.repeat(5000)}!` } }],
    ['POST', '/projects', { body: { name: `${'a-'.repeat(20_000)}!` } }],
    ['GET', `/projects/${'-'.repeat(8000)}!`, {}],
    ['GET', `/runs?time_range=${'1'.repeat(4000)}-`, {}],
    ['GET', `/runs?time_range=${'2026-'.repeat(1500)}`, {}],
    ['GET', '/env', { headers: { Authorization: `Bearer ${'a.'.repeat(5000)}` } }],
    ['GET', '/env', { headers: { Authorization: ' '.repeat(10_000) + 'x' } }],
    ['GET', '/files/none/download', { headers: { Range: `bytes=${' '.repeat(10_000)}x` } }],
    ['GET', '/files/none/download', { headers: { 'If-None-Match': `${'"'.repeat(10_000)}x` } }],
    ['POST', '/events', { body: { event_type: `${'a/'.repeat(20_000)}\n` } }],
    ['POST', '/events', { body: {}, headers: { 'Idempotency-Key': `${'a '.repeat(5000)}!` } }],
  ]

const attacks: Attack[] = [
  {
    id: 'B/09-files',
    attempt: `request ${RANGES.length} odd ranges of a file, and conditions`,
    severity: 'medium',
    run: async ({ attacker: { api } }) => {
      const path = `/files/${await stored(api, 'x'.repeat(SIZE))}/download`
      const outcomes: string[] = []
      for (const range of RANGES) {
        const { status, headers, text } = await api.send('GET', path, { headers: { Range: range } })
        const length = Number(headers.get('content-length'))
        if (![200, 206, 416].includes(status) || length !== text.length || (status !== 416 && length > SIZE))
          throw new Error(`${range.slice(0, 40)}: ${status}, ${length} announced, ${text.length} received`)
        outcomes.push(`${status} ${length}`)
      }
      const changed = await api.send('GET', path, { headers: { Range: 'bytes=0-9', 'If-Range': '"other"' } })
      if (changed.status !== 200 || changed.text.length !== SIZE)
        throw new Error(`another If-Range: ${changed.status} ${changed.text.length}`)
      return outcomes.join(', ')
    },
  },
  {
    id: 'B/09-files/etag',
    attempt: 'find out by conditional requests what a file of another tenant contains',
    severity: 'low',
    run: async ({ attacker, victim }) => {
      const path = `/files/${await stored(victim.api, '1234')}/download`
      const { headers } = await victim.api.send('GET', path)
      const etag = headers.get('etag') ?? ''
      const replies = await Promise.all(
        [etag, '*', '"other"'].map((tag) =>
          attacker.api.send('GET', path, { headers: { 'If-None-Match': tag } }),
        ),
      )
      const statuses = replies.map(({ status }) => status)
      if (etag === '' || statuses.some((status) => status !== 404)) throw new Error(statuses.join())
      return 'another tenant gets 404 for each condition'
    },
  },
  {
    id: 'B/08-bodies/patterns',
    attempt: 'names, domains, times, tokens and headers that make patterns search for long',
    severity: 'medium',
    run: async ({ attacker: { api }, server }) => {
      const before = cpuSecondsOf(server.process.pid)
      const outcomes: number[] = []
      for (const [method, path, sent] of PATTERNS) {
        const { status, text } = await api.send(method, path, sent)
        if (status < 400 || status >= 500)
          throw new Error(`${path.slice(0, 40)}: ${status} ${text.slice(0, 200)}`)
        outcomes.push(status)
      }
      const used = cpuSecondsOf(server.process.pid) - before
      if (used > 2) throw new Error(`the service used ${used} s of CPU for ${PATTERNS.length} requests`)
      return `${outcomes.join(', ')} with ${used.toFixed(2)} s of CPU`
    },
  },
]

attackSuite('ranges, conditions and patterns', attacks)
