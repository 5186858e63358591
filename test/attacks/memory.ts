import { request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { deploy, publish, type Run, runsOf, type Webhook } from '../support/build.ts'
import { hasEnded } from '../support/hasEnded.ts'
import type { Api } from '../support/http.ts'
import { until } from '../support/until.ts'
import { type Attack, attackSuite } from './attack.ts'
import { boundedMemory } from './boundedMemory.ts'
import type { Target } from './target.ts'

export const MIB = 1 << 20

/** The heap of the service under attack. */
const HEAP_MIB = 300

const HOSTILE = `
  import { emit, files, fn, run } from 'svc'
  const nothing = {}
  /** Small here, because the elements are one object; millions of objects for a service that parses its JSON. */
  const objects = (mib) => Array.from({ length: Math.floor((mib * (1 << 20)) / 3) }, () => nothing)
  const many = objects(2)
  export const large = (mib) => objects(mib)
  export const text = (mib) => 'x'.repeat(Math.floor(mib * (1 << 20)))
  export const waits = fn({ 'on-event': 'waits', timeout: 60000 }, () => new Promise((r) => setTimeout(r, 50000)))
  export const sleeps = fn({ mcp: { service: 'memory', description: 'Sleeps' }, timeout: 60000 }, () => new Promise((r) => setTimeout(r, 50000)))
  export const naps = fn({ mcp: { service: 'memory', description: 'Naps' }, timeout: 60000 }, () => new Promise((r) => setTimeout(r, 15000)))
  const list = (of) => Array.from({ length: 32 }, of)
  export const fails = fn({ 'on-event': 'fails' }, () => {
    throw Object.assign(new Error('many'), Object.fromEntries('abcdefgh'.split('').map((name) => [name, list(() => list(() => ({})))])))
  })
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
  export const replies = fn({ webhook: { service: 'memory', path: '/replies' } }, () => ({ status: 200, body: many }))
  const six = 'x'.repeat(6_000_000)
  const plain = { status: 200, headers: { 'content-type': 'text/plain' } }
  export const texts = fn({ webhook: { service: 'memory', path: '/texts' } }, () => ({ ...plain, body: six }))
  export const bytes = fn({ webhook: { service: 'memory', path: '/bytes' } }, () => ({ ...plain, body: Buffer.alloc(4_100_000) }))
`

export interface Attacked {
  readonly target: Target
  readonly api: Api
  readonly urls: ReadonlyMap<string, string>
}

const opened = new Map<Target, Promise<Attacked>>()

/** A service with a heap of 300 MiB, which all attacks of a suite share. */
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
export const call = async (api: Api, fn: string, ...args: readonly unknown[]): Promise<Run> => {
  const { event_id } = await publish(api, 'svc:call', { fn: `main/${fn}`, project: 'memory', args })
  return until(async () => (await runsOf(api, event_id)).find(({ status }) => status !== 'running'), {
    timeoutMs: 80_000,
  })
}

/** Asserts that the service lives, answers, and never used more memory than documented. Resolves with the figure. */
const survived = async ({ target }: Attacked): Promise<string> => {
  const { process: service, url, output } = target.server
  if (hasEnded(service)) throw new Error(`The service died: ${output.join('').slice(-2000)}`)
  const alive = await fetch(`${url}/healthz`)
  if (alive.status !== 200) throw new Error(`/healthz replies ${alive.status}`)
  return `alive, ${boundedMemory(target)} so far with a heap of ${HEAP_MIB} MiB`
}

/** Sends a request without a body and reads only the beginning of the reply, which it returns. */
export const begun = (url: string, method: string): Promise<{ socket: Socket; beginning: string }> =>
  new Promise((resolve, reject) => {
    const { hostname, port, pathname } = new URL(url)
    const socket = connect({ host: hostname, port: Number(port) }, () =>
      socket.write(`${method} ${pathname} HTTP/1.1\r\nHost: ${hostname}\r\nContent-Length: 0\r\n\r\n`),
    )
    socket.once('data', (data) => {
      socket.pause()
      resolve({ socket, beginning: data.toString('latin1') })
    })
    socket.once('error', reject)
    socket.once('close', () => reject(new Error('The connection ended before the reply began')))
  })

/** Posts JSON and resolves when the reply has begun. The reply stays open until `leave` is called. */
export const openReply = (
  api: Api,
  path: string,
  json: string,
): Promise<{ readonly status: number; readonly leave: () => void }> =>
  new Promise((resolve, reject) => {
    const headers = {
      Authorization: `Bearer ${api.key}`,
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
    }
    const sent = request(`${api.url}${path}`, { method: 'POST', headers, agent: false }, (reply) => {
      reply.on('error', () => {}) // left
      reply.resume()
      resolve({ status: reply.statusCode ?? 0, leave: () => sent.destroy() })
    })
    sent.on('error', reject)
    sent.end(json)
  })

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

export const withUnread = async (
  api: Api,
  paths: readonly string[],
  work: () => Promise<void>,
): Promise<void> => {
  const sockets = await Promise.all(paths.map((path) => unread(api, path)))
  for (const socket of sockets) socket.on('error', () => {})
  try {
    await work()
  } finally {
    for (const socket of sockets) socket.destroy()
  }
}

export const statuses = async (replies: readonly Promise<{ readonly status: number }>[]): Promise<string> => {
  const counts = new Map<number | string, number>()
  for (const reply of await Promise.allSettled(replies)) {
    const status = reply.status === 'fulfilled' ? reply.value.status : 'lost'
    counts.set(status, (counts.get(status) ?? 0) + 1)
  }
  return [...counts].map(([status, count]) => `${count} x ${status}`).join(', ')
}

type MemoryAttack = Omit<Attack, 'run'> & { readonly tried: (attacked: Attacked) => Promise<string> }

/** Tries attacks on one service with a small heap, which must survive all of them. */
export const memorySuite = (name: string, attacks: readonly MemoryAttack[]): void =>
  attackSuite(
    name,
    attacks.map(({ tried, ...attack }) => ({
      ...attack,
      run: async (target) => {
        const service = await attacked(target)
        const outcome = await tried(service)
        return `${await survived(service)}; ${outcome}`
      },
    })),
  )
