import * as assert from 'uvu/assert'
import { openEgress } from '../../src/egress/openEgress.ts'
import { NOTHING_ALLOWED, parseOperatorAllow } from '../../src/egress/operatorAllow.ts'
import { openResolver } from '../../src/egress/resolver.ts'
import { openLocalServers } from '../support/localServers.ts'
import { KINDS, LEAVING, openPeers, type Peers } from '../support/leftConnections.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { openWorkbench, resultOf, type Workbench } from './harness.ts'

/** A client with one connection, which the first run opens, and queries that wait for each other. */
const client = `
  import net from 'node:net'
  import tls from 'node:tls'
  let socket
  const queue = []
  const next = () => { if (queue[0]) socket.write(queue[0].text) }
  const open = (port, isSecure) => {
    const at = { port, host: '127.0.0.1', rejectUnauthorized: false }
    socket = isSecure ? tls.connect(at) : net.connect(at)
    socket.on('data', () => { queue.shift().resolve('replied'); next() })
    socket.on('close', () => { socket = undefined; for (const { resolve } of queue.splice(0)) resolve('closed') })
    socket.on('error', () => {})
  }
  const query = (port, isSecure, text) => new Promise((resolve) => {
    if (!socket) open(port, isSecure)
    queue.push({ text, resolve })
    if (queue.length === 1) next()
  })
  export const asks = (port, isSecure, ...texts) => Promise.all(texts.map((text) => query(port, isSecure, text)))
`

const unsent = `
  import net from 'node:net'
  let release
  const held = new Promise((resolve) => (release = resolve))
  export const holds = () => held
  export const floods = (port) => new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1', () => resolve(socket.write(Buffer.alloc(32 << 20))))
    socket.on('error', ({ code }) => release(code))
  })
  export const connects = (port) => void net.connect(port, '127.0.0.1').on('error', ({ code }) => release(code))
`

const modules = {
  'client.js': client,
  'secureClient.js': client,
  'unsent.js': unsent,
  'connecting.js': unsent,
  ...Object.fromEntries(KINDS.map((kind) => [`${kind}.js`, LEAVING])),
}

const after = suite<{ bench: Workbench; peers: Peers; local: Awaited<ReturnType<typeof openLocalServers>> }>(
  'the connections of a run that has ended',
)
after.before(async (context) => {
  const [peers, local] = [await openPeers(), await openLocalServers()]
  const { serve: egress } = openEgress({
    resolve: openResolver(),
    allow: parseOperatorAllow('127.0.0.0/8') ?? NOTHING_ALLOWED,
    ownPorts: () => new Set(),
    networkOf: () => null,
  })
  const bench = await openWorkbench(modules, { egress, heartbeatMs: 20_000 })
  Object.assign(context, { bench, peers, local })
})
after.after(async ({ bench, peers, local }) => {
  await bench.runtime.close()
  peers.close()
  local.close()
})

for (const kind of KINDS) {
  after(`send nothing more, although the process serves others: ${kind}`, async ({ bench, peers }) => {
    const { received } = peers
    received.length = 0
    const call = (name: string, ...args: unknown[]) => bench.invoke(`${kind}/${name}`, { args })
    const held = call('holds')
    await resultOf(call('leaves', kind, peers.portOf(kind)))
    await until(() => received.join('').includes('first'))
    peers.poke()
    await resultOf(call('continues', peers.portOf('http')))
    await resultOf(held)
    assert.equal(received, ['first'])
  })
}

for (const name of ['client', 'secureClient']) {
  after(`are used by the runs after it, which a client serves in turn: ${name}`, async ({ bench, local }) => {
    const isSecure = name === 'secureClient'
    const port = isSecure ? local.ports.secureEcho : local.ports.echo
    const before = local.accepted
    const asks = (...texts: string[]) =>
      resultOf(bench.invoke(`${name}/asks`, { args: [port, isSecure, ...texts] }))
    assert.equal(await asks('a'), ['replied'])
    assert.equal(await asks('b', 'c', 'd'), ['replied', 'replied', 'replied'])
    assert.equal(await asks('e'), ['replied'])
    const many = Array.from({ length: 20 }, (_, n) => asks(`${n}`))
    for (const replies of await Promise.all(many)) assert.equal(replies, ['replied'])
    assert.is(local.accepted, before + 1)
  })
}

after('are closed when bytes of it are not sent yet', async ({ bench, local }) => {
  const held = bench.invoke('unsent/holds')
  await resultOf(bench.invoke('unsent/floods', { args: [local.ports.silent] }))
  assert.is(await resultOf(held), 'ERR_EGRESS_REFUSED')
})

after('are closed while they are being opened', async ({ bench, local }) => {
  const held = bench.invoke('connecting/holds')
  await resultOf(bench.invoke('connecting/connects', { args: [local.ports.echo] }))
  assert.is(await resultOf(held), 'ERR_EGRESS_REFUSED')
})

after.run()
