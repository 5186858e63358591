import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { newId } from '../../src/ids.ts'
import { deploy, publish, type Run, runsOf, type Webhook } from '../support/build.ts'
import type { Api } from '../support/http.ts'
import { until } from '../support/until.ts'
import { type Attack, attackSuite } from './attack.ts'
import type { Target } from './target.ts'

const MIB = 1 << 20

/** The heap of the service under attack, and the most memory that it may ever use (docs/operations.md). */
const HEAP_MIB = 300
const MOST_RESIDENT_MIB = 1024

const HOSTILE = `
  import { emit, files, fn, run } from 'svc'
  const nothing = {}
  /** Small here, because the elements are one object; millions of objects for a service that parses its JSON. */
  const objects = (mib) => Array.from({ length: Math.floor((mib * (1 << 20)) / 3) }, () => nothing)
  export const large = (mib) => objects(mib)
  export const text = (mib) => 'x'.repeat(Math.floor(mib * (1 << 20)))
  export const waits = fn({ 'on-event': 'waits', timeout: 60000 }, () => new Promise((r) => setTimeout(r, 50000)))
  export const awaits = async (count, mib) => {
    const results = await Promise.allSettled(Array.from({ length: count }, () => run('main/text', mib)))
    return results.filter(({ status }) => status === 'fulfilled').length
  }
  export const emits = async (count, mib) => {
    for (let n = 0; n < count; n++) await emit('flood', 'y'.repeat(Math.floor(mib * (1 << 20))))
  }
  export const reads = async (count) => {
    await files.put('flood.bin', new Uint8Array(1 << 20))
    await Promise.all(Array.from({ length: count }, () => files.get('flood.bin')))
    return 'read'
  }
  export const hook = fn({ webhook: { service: 'memory', path: '/hook' } }, (request) => ({
    status: 200, body: { raw: request.bodyRaw?.length ?? 0, body: typeof request.body },
  }))
  export const replies = fn({ webhook: { service: 'memory', path: '/replies' } }, () => ({ status: 200, body: objects(5.5) }))
`

interface Attacked {
  readonly target: Target
  readonly api: Api
  readonly urls: ReadonlyMap<string, string>
}

const opened = new Map<Target, Promise<Attacked>>()

/** A service with a heap of 300 MiB, which all attacks of a tier share. */
const attacked = (target: Target): Promise<Attacked> => {
  const known = opened.get(target)
  if (known) return known
  const open = async (): Promise<Attacked> => {
    const fresh = await target.fresh({ NODE_OPTIONS: `--max-old-space-size=${HEAP_MIB}` })
    const { api } = fresh.attacker
    await deploy(api, 'memory', { 'main.js': HOSTILE })
    const hooks = await api.get<Webhook[]>('/projects/memory/webhooks')
    return { target: fresh, api, urls: new Map(hooks.map(({ path, url }) => [path, url])) }
  }
  const opening = open()
  opened.set(target, opening)
  return opening
}

/** Calls a function and waits for the end of its run, also on a machine that is busy with the attack. */
const call = async (api: Api, fn: string, ...args: readonly unknown[]): Promise<Run> => {
  const { event_id } = await publish(api, 'svc:call', { fn: `main/${fn}`, project: 'memory', args })
  return until(async () => (await runsOf(api, event_id)).find(({ status }) => status !== 'running'), {
    timeoutMs: 80_000,
  })
}

/** Asserts that the service lives, answers, and never used more memory than documented. Resolves with the figure. */
const survived = async ({ target }: Attacked): Promise<string> => {
  const { process: service, url, output } = target.server
  if (service.exitCode !== null || service.signalCode !== null)
    throw new Error(`The service died: ${output.join('').slice(-2000)}`)
  const alive = await fetch(`${url}/healthz`)
  if (alive.status !== 200) throw new Error(`/healthz replies ${alive.status}`)
  const [, kib = 0] = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${service.pid}/status`, 'utf8')) ?? []
  const mib = Math.ceil(Number(kib) / 1024)
  if (mib > MOST_RESIDENT_MIB) throw new Error(`Expected at most ${MOST_RESIDENT_MIB} MiB, got ${mib}`)
  return `alive, at most ${mib} MiB so far with a heap of ${HEAP_MIB} MiB`
}

/** Sends a request and never reads the reply. */
const unread = (api: Api, path: string): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(api.url)
    const socket = connect({ host: hostname, port: Number(port) }, () => {
      socket.write(`GET /v1${path} HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${api.key}\r\n\r\n`)
      socket.pause()
      resolve(socket)
    })
    socket.once('error', reject)
  })

const withUnread = async (api: Api, paths: readonly string[], work: () => Promise<void>): Promise<void> => {
  const sockets = await Promise.all(paths.map((path) => unread(api, path)))
  for (const socket of sockets) socket.on('error', () => {})
  try {
    await work()
  } finally {
    for (const socket of sockets) socket.destroy()
  }
}

const statuses = async (replies: readonly Promise<{ readonly status: number }>[]): Promise<string> => {
  const counts = new Map<number | string, number>()
  for (const reply of await Promise.allSettled(replies)) {
    const status = reply.status === 'fulfilled' ? reply.value.status : 'lost'
    counts.set(status, (counts.get(status) ?? 0) + 1)
  }
  return [...counts].map(([status, count]) => `${count} x ${status}`).join(', ')
}

const OBJECTS = Buffer.from(`[${'{},'.repeat(8_000_000)}1]`)

const attacks: readonly (Omit<Attack, 'run'> & {
  readonly tried: (attacked: Attacked) => Promise<string>
})[] = [
  {
    id: 'B/11-amplification/runs',
    attempt: 'list a hundred runs whose results have 5.9 MiB of small objects, ten times at once; read none',
    severity: 'high',
    tried: async ({ api }) => {
      const runs = await Promise.all(Array.from({ length: 40 }, () => call(api, 'text', 5.9)))
      await Promise.all(Array.from({ length: 8 }, () => call(api, 'large', 5.9)))
      const listed = await statuses(Array.from({ length: 10 }, () => api.send('GET', '/runs?limit=100')))
      await withUnread(
        api,
        Array.from({ length: 60 }, (_, n) => `/runs/${runs[n % runs.length]?.run_id}`),
        async () => void (await api.get('/runs?limit=100')),
      )
      return `lists: ${listed}`
    },
  },
  {
    id: 'B/08-bodies/webhook-memory',
    attempt: 'send eight webhooks of 24 MB of small objects at once',
    severity: 'high',
    tried: async ({ urls }) => {
      const url = urls.get('/hook') ?? ''
      return statuses(Array.from({ length: 8 }, () => fetch(url, { method: 'POST', body: OBJECTS })))
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
    attempt: 'publish forty events of a mebibyte of small objects at once, and JSON of any depth',
    severity: 'medium',
    tried: async ({ api }) => {
      const data = `[${'{},'.repeat(340_000)}1]`
      const wide = await statuses(
        Array.from({ length: 40 }, () =>
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
    id: 'B/07-sse/unread',
    attempt: 'follow streams of large data by eighty clients that do not read',
    severity: 'high',
    tried: async ({ api }) => {
      const small = await call(api, 'emits', 300, 0.06)
      const large = await call(api, 'emits', 12, 4)
      const streams = [small.stream_id, large.stream_id]
      const paths = Array.from({ length: 80 }, (_, n) =>
        n % 4 === 3 ? '/env/subscribe?from=start' : `/streams/${streams[n % 2]}/subscribe?from=start`,
      )
      await withUnread(api, paths, async () => {
        for (let n = 0; n < 20; n++) await publish(api, 'nothing', 'z'.repeat(60_000))
      })
      return 'all clients were served'
    },
  },
  {
    id: 'B/08-bodies/many-results',
    attempt: 'return thirty results of small objects at once, and await sixty results of 6 MiB in one run',
    severity: 'high',
    tried: async ({ api }) => {
      const runs = await Promise.all(Array.from({ length: 30 }, () => call(api, 'large', 5)))
      const awaited = await call(api, 'awaits', 60, 5.9)
      const ends = runs.map(({ status }) => status)
      return `${new Set(ends).size} kinds of ends, ${JSON.stringify(awaited.result)} results awaited`
    },
  },
  {
    id: 'B/08-bodies/webhook-replies',
    attempt: 'call twenty webhooks at once whose replies are 5.5 MiB of small objects',
    severity: 'high',
    tried: async ({ urls }) =>
      statuses(Array.from({ length: 20 }, () => fetch(urls.get('/replies') ?? '', { method: 'POST' }))),
  },
  {
    id: 'A/24-unread-replies/memory',
    attempt: 'read a file of a mebibyte three hundred times at once from functions',
    severity: 'high',
    tried: async ({ api }) => {
      const runs = await Promise.all(Array.from({ length: 4 }, () => call(api, 'reads', 75)))
      return runs.map(({ status }) => status).join(', ')
    },
  },
  {
    id: 'B/11-amplification/waiting',
    attempt: 'publish two thousand events of 60 KB for a function that sleeps',
    severity: 'high',
    tried: async ({ api }) => {
      let left = 2000
      const data = 'w'.repeat(60_000)
      await Promise.all(
        Array.from({ length: 20 }, async () => {
          while (left-- > 0)
            await api.send('POST', '/events', { body: { event_type: 'waits', event_data: data } })
        }),
      )
      return 'all events were accepted'
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
]

attackSuite(
  'memory of the service',
  attacks.map(({ tried, ...attack }) => ({
    ...attack,
    run: async (target) => {
      const service = await attacked(target)
      const outcome = await tried(service)
      return `${await survived(service)}; ${outcome}`
    },
  })),
)
