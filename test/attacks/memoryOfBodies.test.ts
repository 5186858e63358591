import { newId } from '../../src/ids.ts'
import { publish } from '../support/build.ts'
import { memorySuite, MIB, openReply, statuses } from './memory.ts'

const smallObjects = (count: number) => `[${'{},'.repeat(count)}1]`

const OBJECTS = Buffer.from(`[${'{},'.repeat(8_000_000)}1]`)

memorySuite('memory of the service: bodies', [
  {
    id: 'B/08-bodies/webhook-memory',
    attempt: 'send six webhooks of 24 MB of small objects at once',
    severity: 'high',
    tried: async ({ urls }) => {
      const url = urls.get('/hook') ?? ''
      return statuses(Array.from({ length: 6 }, () => fetch(url, { method: 'POST', body: OBJECTS })))
    },
  },
  {
    id: 'B/08-bodies/webhook',
    attempt: 'send webhooks of JSON that nests five million levels, and wide forms',
    severity: 'medium',
    tried: async ({ urls }) => {
      const url = urls.get('/hook') ?? ''
      const bodies = ['['.repeat(5_000_000), '{"a":'.repeat(3_000_000), 'a=&'.repeat(5_000_000)]
      const got: string[] = []
      for (const body of bodies)
        for (const type of ['application/json', 'application/x-www-form-urlencoded']) {
          const reply = await fetch(url, { method: 'POST', body, headers: { 'Content-Type': type } })
          got.push(`${reply.status}`)
          if (reply.status !== 200) throw new Error(`${reply.status} ${await reply.text()}`)
        }
      return got.join(', ')
    },
  },
  {
    id: 'B/08-bodies/webhook-sizes',
    attempt: 'the largest documented body arrives; one byte more is refused on arrival',
    severity: 'low',
    tried: async ({ urls }) => {
      const url = urls.get('/hook') ?? ''
      const send = (size: number) => fetch(url, { method: 'POST', body: Buffer.alloc(size, 'x') })
      for (const mib of [4, 5, 12, 25]) {
        const { status } = await send(mib * MIB)
        if (status !== 200) throw new Error(`${mib} MiB: ${status}`)
      }
      const { status } = await send(25 * MIB + 1)
      if (status !== 413) throw new Error(`25 MiB and one byte: ${status}`)
      return '25 MiB arrive, then 413'
    },
  },
  {
    id: 'B/08-bodies/json',
    attempt: 'publish thirty events of a mebibyte of small objects at once, and JSON of any depth',
    severity: 'medium',
    tried: async ({ api }) => {
      const data = `[${'{},'.repeat(340_000)}1]`
      const wide = await statuses(
        Array.from({ length: 30 }, () =>
          api.send('POST', '/events', { body: `{"event_type":"wide","event_data":${data}}` }),
        ),
      )
      const deep = `{"event_type":"deep","event_data":${'['.repeat(400_000)}${']'.repeat(400_000)}}`
      const { status } = await api.send('POST', '/events', { body: deep })
      if (status !== 400) throw new Error(`Expected 400 for deep JSON, got ${status}`)
      return `wide: ${wide}; deep: 400`
    },
  },
  {
    id: 'B/08-bodies/forms',
    attempt: 'upload forms with many fields, long headers and large fields',
    severity: 'medium',
    tried: async ({ api }) => {
      const boundary = newId()
      const head = { 'Content-Type': `multipart/form-data; boundary=${boundary}` }
      const part = (more: string, body: string) =>
        `--${boundary}\r\nContent-Disposition: form-data; ${more}\r\n\r\n${body}\r\n`
      const forms = [
        Array.from({ length: 20_000 }, (_, n) => part(`name="f${n}"`, 'x')).join(''),
        part('name="hash"', 'x'.repeat(20 * MIB)),
        part(`name="${'n'.repeat(4 * MIB)}"`, 'x'),
        `--${boundary}\r\n${'X-Header: y\r\n'.repeat(200_000)}\r\nx\r\n`,
      ]
      const got: number[] = []
      for (const form of forms) {
        const send = () =>
          api.send('POST', '/projects/memory/builds', { body: `${form}--${boundary}--\r\n`, headers: head })
        const replies = await Promise.all(
          Array.from({ length: 4 }, () => send().catch(() => ({ status: 0 }))),
        )
        got.push(...replies.map(({ status }) => status))
      }
      const wrong = got.filter((status) => (status < 400 && status !== 0) || status >= 500)
      if (wrong.length > 0) throw new Error(`Expected every form to be refused, got ${got.join(' ')}`)
      return `replies: ${[...new Set(got)].join(', ')}`
    },
  },
  {
    id: 'B/08-bodies/open-replies',
    attempt: 'keep two hundred streams open whose requests had a mebibyte or 63 KB of small objects',
    severity: 'critical',
    tried: async ({ api }) => {
      const { stream_id } = await publish(api, 'waits', null)
      const opened: Awaited<ReturnType<typeof openReply>>[] = []
      try {
        for (let n = 0; n < 200; n++) {
          const event_data = smallObjects(n < 20 ? 340_000 : 21_000)
          const body = `{"event_type":"nothing","stream_id":"${stream_id}","event_data":${event_data}}`
          opened.push(await openReply(api, '/v1/streams/subscribe-with-event', body))
        }
        return await statuses(opened.map(async ({ status }) => ({ status })))
      } finally {
        for (const { leave } of opened) leave()
      }
    },
  },
  {
    id: 'B/08-bodies/open-replies/tools',
    attempt:
      'call a tool that sleeps twenty times with a mebibyte of small objects, and leave when the reply has begun',
    severity: 'critical',
    tried: async ({ api }) => {
      const got: { status: number }[] = []
      for (let n = 1; n <= 20; n++) {
        const input = `{"a":${smallObjects(340_000)}}`
        const params = `{"name":"memory_main_sleeps","_meta":{"progressToken":${n}},"arguments":${input}}`
        const reply = await openReply(
          api,
          '/mcp',
          `{"jsonrpc":"2.0","id":${n},"method":"tools/call","params":${params}}`,
        )
        reply.leave()
        got.push(reply)
      }
      return statuses(got.map(async (reply) => reply))
    },
  },
  {
    id: 'B/08-bodies/waiting-calls',
    attempt:
      'wait for thirty calls of a function that sleeps: each had a mebibyte of small objects, ten an Idempotency-Key',
    severity: 'critical',
    tried: async ({ api }) => {
      const many = smallObjects(340_000)
      const call = (headers = {}) =>
        api.send('POST', '/functions/memory/main%2Fnaps?wait=15', { body: `{"args":[${many}]}`, headers })
      const params = `{"name":"memory_main_naps","arguments":{"a":${many}}}`
      const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`
      const replies: Promise<{ status: number }>[] = []
      for (let n = 0; n < 10; n++)
        replies.push(
          call(),
          call({ 'Idempotency-Key': newId() }),
          api.send('POST', `${api.url}/mcp`, { body }),
        )
      return statuses(replies)
    },
  },
])
