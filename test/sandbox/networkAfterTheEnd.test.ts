import * as assert from 'uvu/assert'
import { openEgress } from '../../src/egress/openEgress.ts'
import { NOTHING_ALLOWED, parseOperatorAllow } from '../../src/egress/operatorAllow.ts'
import { openResolver } from '../../src/egress/resolver.ts'
import { openLocalServers } from '../support/localServers.ts'
import { suite } from '../support/suite.ts'
import { openWorkbench, resultOf, type Workbench } from './harness.ts'

const network = `
  import http from 'node:http'
  import net from 'node:net'
  import dns from 'node:dns/promises'
  import { readFile } from 'node:fs/promises'
  let report
  const reported = new Promise((resolve) => (report = resolve))
  const connected = (socket) => new Promise((resolve, reject) => socket.on('connect', resolve).on('error', reject))
  const agent = new http.Agent({ keepAlive: true })
  const get = (port) => new Promise((resolve, reject) =>
    http.get({ port, agent }, (reply) => reply.resume().on('end', () => resolve(reply.statusCode))).on('error', reject))
  const attempts = {
    fetch: async (port) => (await fetch('http://127.0.0.1:' + port)).text(),
    'node:http': get,
    'node:net': (port) => connected(net.connect(port, '127.0.0.1')),
    'a new socket': (port) => connected(new net.Socket().connect(port, '127.0.0.1')),
    lookup: () => dns.lookup('localhost'),
    resolve4: () => dns.resolve4('localhost'),
    WebSocket: (port) => new Promise((resolve, reject) => {
      const socket = new WebSocket('ws://127.0.0.1:' + port)
      socket.onopen = resolve
      socket.onerror = reject
    }),
    'the WebSocket of an instance': (port) => new (WebSocket.prototype.constructor)('ws://127.0.0.1:' + port),
  }
  const outcomeOf = async (name, port) => {
    try { await attempts[name](port); return 'reached' } catch (error) { return (error.cause ?? error).code }
  }
  export const reaches = outcomeOf
  let over
  export const leaves = (name, port) => {
    const ended = new Promise((resolve) => (over = resolve))
    void ended.then(() => outcomeOf(name, port)).then(report)
  }
  export const continues = async () => { over(); return reported }
`

const loading = `
  import net from 'node:net'
  let begin
  const begun = new Promise((resolve) => (begin = resolve))
  const outcome = begun.then((port) => new Promise((resolve) =>
    net.connect(port, '127.0.0.1').on('connect', () => resolve('reached')).on('error', ({ code }) => resolve(code))))
  export const touches = () => 'loaded'
  export const lets = (port) => { begin(port); return outcome }
`

const pool = `
  import http from 'node:http'
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
  let taken
  export const takes = (port) => new Promise((resolve) => {
    taken = http.get({ port, agent, path: '/big' }, () => resolve('taken'))
  })
  export const waits = (port) => new Promise((resolve, reject) => {
    http.get({ port, agent }, (reply) => resolve(reply.resume().statusCode)).on('error', reject)
    taken.destroy()
  })
`

const NAMES = [
  'fetch',
  'node:http',
  'node:net',
  'a new socket',
  'lookup',
  'resolve4',
  'WebSocket',
  'the WebSocket of an instance',
]

/** A module for each attempt, because one waits for its report only. */
const moduleOf = (name: string): string => `n${NAMES.indexOf(name)}`
const modules = () => ({
  'loading.js': loading,
  'pool.js': pool,
  ...Object.fromEntries(NAMES.map((name) => [`${moduleOf(name)}.js`, network])),
})

const after = suite<{ bench: Workbench; port: number; close: () => void }>(
  'the network after the end of a run',
)
after.before(async (context) => {
  const { ports, close } = await openLocalServers()
  const { serve: egress } = openEgress({
    resolve: openResolver(),
    allow: parseOperatorAllow('127.0.0.0/8,::1') ?? NOTHING_ALLOWED,
    ownPorts: () => new Set(),
    networkOf: () => null,
  })
  const bench = await openWorkbench(modules(), { egress, heartbeatMs: 20_000 })
  Object.assign(context, { bench, port: ports.http, close })
})
after.after(async ({ bench, close }) => {
  await bench.runtime.close()
  close()
})

for (const name of NAMES) {
  after(`it opens nothing more, although the process serves others: ${name}`, async ({ bench, port }) => {
    const call = (fn: string) => resultOf(bench.invoke(`${moduleOf(name)}/${fn}`, { args: [name, port] }))
    assert.is(await call('reaches'), 'reached')
    await call('leaves')
    assert.is(await call('continues'), 'ERR_EGRESS_REFUSED')
    assert.is(await call('reaches'), 'reached')
  })
}

after('what a module starts while it loads belongs to the process', async ({ bench, port }) => {
  await resultOf(bench.invoke('loading/touches'))
  assert.is(await resultOf(bench.invoke('loading/lets', { args: [port] })), 'reached')
})

after(
  'a request that waits for a connection of an ended run gets one of its own',
  async ({ bench, port }) => {
    assert.is(await resultOf(bench.invoke('pool/takes', { args: [port] })), 'taken')
    assert.is(await resultOf(bench.invoke('pool/waits', { args: [port] })), 200)
  },
)

after.run()
