import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import * as assert from 'uvu/assert'
import {
  creditFrame,
  DOWNLOAD_WINDOW,
  FRAME,
  type Frame,
  FrameReader,
  frameOf,
  jsonFrame,
  MAX_LOOKUPS,
  MAX_STREAMS,
  UPLOAD_WINDOW,
} from '../../src/egress/frames.ts'
import { NOTHING_ALLOWED, parseOperatorAllow } from '../../src/egress/operatorAllow.ts'
import { openPolicy } from '../../src/egress/policy.ts'
import { serveTunnel, type Tunnel, type TunnelDeps } from '../../src/egress/tunnel.ts'
import { socketPair } from '../support/socketPair.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

interface Setting {
  readonly pipe: Socket
  readonly child: Socket
  readonly tunnel: Tunnel
  readonly frames: Frame[]
  /** The error that destroyed the pipe. */
  readonly violation: () => Error | undefined
  readonly places: () => number
}

const tunnels = suite<{ servers: Server[] }>('the tunnel between a child and the egress')

/** All sockets of a test. */
const sockets: Socket[] = []

tunnels.before.each((context) => {
  context.servers = []
})
tunnels.after.each(({ servers }) => {
  for (const socket of sockets.splice(0)) socket.destroy()
  for (const server of servers) server.close()
})

const setUp = async (deps: Partial<TunnelDeps> = {}): Promise<Setting> => {
  const [pipe, child] = await socketPair()
  sockets.push(pipe, child)
  let places = 0
  const tunnel = serveTunnel(pipe, {
    admit: async () => [{ address: '127.0.0.1', family: 4 }],
    network: () => null,
    takePlace: () => ++places > 0,
    givePlaceBack: () => void places--,
    ...deps,
  })
  let violation: Error | undefined
  pipe.on('error', (error) => {
    violation = error
  })
  child.on('error', () => {})
  const frames: Frame[] = []
  const reader = new FrameReader()
  child.on('data', (chunk: Buffer) => {
    reader.add(chunk)
    for (let frame = reader.next(); frame; frame = reader.next()) frames.push(frame)
  })
  return { pipe, child, tunnel, frames, violation: () => violation, places: () => places }
}

const serve = async (
  { servers }: { servers: Server[] },
  onSocket: (socket: Socket) => void,
): Promise<number> => {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => {})
    sockets.push(socket)
    onSocket(socket)
  }).listen(0, '127.0.0.1')
  servers.push(server)
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

const open = (id: number, port: number, host = 'a.example') =>
  jsonFrame(FRAME.open, id, { host, port, family: 0 })

const kinds = ({ frames }: Setting, id: number) =>
  frames.filter((frame) => frame.id === id).map(({ kind }) => kind)
const hasFrame = (setting: Setting, id: number, kind: number) =>
  until(() => kinds(setting, id).includes(kind))

const opened = async (
  context: { servers: Server[] },
  onSocket: (socket: Socket) => void,
  deps: Partial<TunnelDeps> = {},
) => {
  const port = await serve(context, onSocket)
  const setting = await setUp(deps)
  setting.child.write(open(1, port))
  await hasFrame(setting, 1, FRAME.opened)
  return { ...setting, port }
}

/** Answers to connections only. */
const slowLookups: TunnelDeps['admit'] = ({ port }) =>
  port === null ? new Promise(() => {}) : Promise.resolve([{ address: '127.0.0.1', family: 4 }])

const violations: Readonly<Record<string, Buffer | ((port: number) => Buffer)>> = {
  garbage: Buffer.from('GET / HTTP/1.1\r\nhost: a\r\n\r\n'),
  'a frame of an unknown kind': frameOf(77, 1),
  'a frame that only the service sends': jsonFrame(FRAME.opened, 1, {}),
  'a frame that is too long': Buffer.from([FRAME.data, 0, 0, 0, 1, 0x7f, 0xff, 0xff, 0xff]),
  'data of an unknown stream': frameOf(FRAME.data, 9, Buffer.from('x')),
  'an open without JSON': frameOf(FRAME.open, 1, Buffer.from('{')),
  'an open without a port': jsonFrame(FRAME.open, 1, { host: 'a', family: 0 }),
  'an open with a port that is too high': open(1, 65_536),
  'an open with a host that is no text': jsonFrame(FRAME.open, 1, { host: { a: 1 }, port: 1, family: 0 }),
  'an open with a huge host': open(1, 80, 'a'.repeat(5000)),
  'a lookup with a port': jsonFrame(FRAME.lookup, 1, { host: 'a', port: 1, family: 0 }),
  'an id of zero': open(0, 80),
  'an id that is used again': (port) => Buffer.concat([open(2, port), open(2, port)]),
  'an id that goes back': (port) => Buffer.concat([open(3, port), open(2, port)]),
  'an id of a closed stream': (port) =>
    Buffer.concat([open(2, port), frameOf(FRAME.close, 2), frameOf(FRAME.close, 2)]),
  'empty data': frameOf(FRAME.data, 1),
  'data before the stream is open': (port) =>
    Buffer.concat([open(2, port), frameOf(FRAME.data, 2, Buffer.from('x'))]),
  'data after the end': Buffer.concat([frameOf(FRAME.end, 1), frameOf(FRAME.data, 1, Buffer.from('x'))]),
  'data after the close': Buffer.concat([frameOf(FRAME.close, 1), frameOf(FRAME.data, 1, Buffer.from('x'))]),
  'two ends': Buffer.concat([frameOf(FRAME.end, 1), frameOf(FRAME.end, 1)]),
  'more data than the window': frameOf(FRAME.data, 1, Buffer.alloc(UPLOAD_WINDOW + 1)),
  'more credit than the window': creditFrame(1, 1),
  'no credit': creditFrame(1, 0),
  'credit of two bytes': frameOf(FRAME.credit, 1, Buffer.alloc(2)),
  'too many streams': (port) =>
    Buffer.concat(Array.from({ length: MAX_STREAMS }, (_, index) => open(index + 2, port))),
  'too many lookups': Buffer.concat(
    Array.from({ length: MAX_LOOKUPS + 1 }, (_, index) =>
      jsonFrame(FRAME.lookup, index + 2, { host: 'a', family: 0 }),
    ),
  ),
}
for (const [name, attempt] of Object.entries(violations))
  tunnels(`${name} ends the child and its connections`, async (context) => {
    let connected = 0
    const onSocket = (socket: Socket) => {
      connected++
      socket.resume().on('close', () => connected--)
      socket.on('end', () => socket.end())
    }
    const setting = await opened(context, onSocket, { admit: slowLookups })
    setting.child.write(typeof attempt === 'function' ? attempt(setting.port) : attempt)
    await until(() => setting.pipe.destroyed)
    assert.is(setting.violation()?.name, 'ProtocolViolation')
    await until(() => connected === 0)
    assert.is(setting.tunnel.streams, 0)
    assert.is(setting.places(), 0)
  })

tunnels('a stream carries data, ends in both directions and frees its place', async (context) => {
  const setting = await opened(context, (socket) => socket.pipe(socket))
  setting.child.write(Buffer.concat([frameOf(FRAME.data, 1, Buffer.from('abc')), frameOf(FRAME.end, 1)]))
  await hasFrame(setting, 1, FRAME.close)
  assert.equal(kinds(setting, 1), [FRAME.opened, FRAME.data, FRAME.end, FRAME.close])
  assert.is(setting.tunnel.streams, 1)
  setting.child.write(frameOf(FRAME.close, 1))
  await until(() => setting.tunnel.streams === 0)
  assert.is(setting.places(), 0)
})

tunnels('data before an end reaches the target although the child closes at once', async (context) => {
  let received = ''
  const setting = await opened(context, (socket) => {
    socket.on('data', (data: Buffer) => (received += data.toString()))
  })
  setting.child.write(
    Buffer.concat([
      frameOf(FRAME.data, 1, Buffer.from('abc')),
      frameOf(FRAME.end, 1),
      frameOf(FRAME.close, 1),
    ]),
  )
  await until(() => received === 'abc' && setting.tunnel.streams === 0)
})

tunnels('a target is read only as far as the child has credit', async (context) => {
  let sent = 0
  const setting = await opened(context, (socket) => {
    const more = () => {
      while (socket.write(Buffer.alloc(64 << 10))) sent += 64 << 10
    }
    socket.on('drain', more)
    more()
  })
  const received = () =>
    setting.frames.reduce((sum, { kind, payload }) => sum + (kind === FRAME.data ? payload.length : 0), 0)
  await until(() => received() >= DOWNLOAD_WINDOW)
  const first = received()
  assert.ok(first < DOWNLOAD_WINDOW + (64 << 10), `Expected one read over the window at most, got ${first}`)
  setting.child.write(creditFrame(1, DOWNLOAD_WINDOW))
  await until(() => received() >= 2 * DOWNLOAD_WINDOW)
  assert.ok(sent > 0)
})

tunnels(
  'a child that reads nothing holds a bounded number of bytes, over all its streams',
  async (context) => {
    const data = Buffer.alloc(1 << 20)
    const port = await serve(context, (socket) => socket.write(data))
    const setting = await setUp()
    setting.child.pause()
    const opens = Array.from({ length: MAX_STREAMS }, (_, index) => open(index + 1, port))
    setting.child.write(Buffer.concat(opens))
    await until(() => setting.pipe.writableLength >= 256 << 10)
    for (let turn = 0; turn < 200; turn++) await new Promise(setImmediate)
    assert.ok(
      setting.pipe.writableLength < (256 << 10) + (128 << 10),
      `Expected a bound, got ${setting.pipe.writableLength}`,
    )
    setting.child.destroy()
    await until(() => setting.tunnel.streams === 0 && setting.places() === 0)
  },
)

tunnels('a target that reads nothing receives no more than the window of the child', async (context) => {
  const setting = await opened(context, (socket) => socket.pause())
  let granted = UPLOAD_WINDOW
  let sent = 0
  const chunk = Buffer.alloc(UPLOAD_WINDOW / 4)
  // Sends until the kernel is full and no more credit comes.
  for (let quiet = 0; quiet < 200; quiet++) {
    const credits = setting.frames.filter(({ kind }) => kind === FRAME.credit)
    granted = UPLOAD_WINDOW + credits.reduce((sum, { payload }) => sum + payload.readUInt32BE(), 0)
    for (; sent + chunk.length <= granted; quiet = 0) {
      setting.child.write(frameOf(FRAME.data, 1, chunk))
      sent += chunk.length
    }
    await new Promise(setImmediate)
  }
  assert.is(setting.violation(), undefined)
  // The kernel may have moved more bytes meanwhile, and the egress granted as many.
  await until(() => {
    setting.child.write(frameOf(FRAME.data, 1, Buffer.alloc(UPLOAD_WINDOW)))
    return setting.violation() !== undefined
  })
})

tunnels(
  'a target that sends bytes one by one fills no queue of a child that reads nothing',
  async (context) => {
    const target = Promise.withResolvers<Socket>()
    const port = await serve(context, target.resolve)
    const { child, pipe, frames } = await setUp()
    child.write(open(1, port))
    await until(() => frames.length > 0)
    child.pause()
    const socket = (await target.promise).setNoDelay(true)
    for (let n = 0; n < 20_000; n++) {
      socket.write('x')
      await new Promise((resolve) => setImmediate(resolve))
    }
    assert.ok(pipe.writableLength < 20_000, `${pipe.writableLength} bytes in frames of ten`)
    child.resume()
    const received = () =>
      frames.filter(({ kind }) => kind === FRAME.data).reduce((sum, { payload }) => sum + payload.length, 0)
    await until(() => received() === 20_000)
  },
)

tunnels('a name is resolved once, and only the checked addresses are dialled', async (context) => {
  const port = await serve(context, (socket) => socket.end('the public server'))
  let asked = 0
  const setting = await setUp({
    admit: async () => {
      asked++
      return asked === 1 ? [{ address: '127.0.0.1', family: 4 }] : [{ address: '127.0.0.2', family: 4 }]
    },
  })
  setting.child.write(open(1, port, 'rebinding.example'))
  await hasFrame(setting, 1, FRAME.data)
  assert.is(asked, 1)
  const { remote } = JSON.parse(setting.frames[0]?.payload.toString() ?? '') as {
    remote: { address: string }
  }
  assert.is(remote.address, '127.0.0.1')
})

tunnels('a failure of the policy itself is an error of the connection', async () => {
  const setting = await setUp({ admit: () => Promise.reject(new TypeError('a mistake')) })
  setting.child.write(Buffer.concat([open(1, 80), jsonFrame(FRAME.lookup, 2, { host: 'a', family: 0 })]))
  await hasFrame(setting, 1, FRAME.close)
  await hasFrame(setting, 2, FRAME.found)
  assert.match(setting.frames[0]?.payload.toString() ?? '', /a mistake/)
})

tunnels('a connection over the share of the organization is refused', async () => {
  const setting = await setUp({ takePlace: () => false })
  setting.child.write(open(1, 80))
  await hasFrame(setting, 1, FRAME.close)
  assert.match(setting.frames[0]?.payload.toString() ?? '', /EMFILE/)
  setting.child.write(frameOf(FRAME.close, 1))
  await until(() => setting.tunnel.streams === 0)
  assert.is(setting.places(), 0)
})

tunnels('a connection that the list no longer contains is closed with the reason', async (context) => {
  let network = [{ host: 'a.example', below: false, port: null }]
  const setting = await opened(context, (socket) => socket.resume(), { network: () => network })
  setting.tunnel.closeUnlisted()
  assert.is(setting.tunnel.streams, 1)
  network = []
  setting.tunnel.closeUnlisted()
  await hasFrame(setting, 1, FRAME.close)
  assert.match(setting.frames.at(-1)?.payload.toString() ?? '', /not in `network`/)
})

tunnels('an address that two names share is listed while one of them is, in any order', async (context) => {
  const port = await serve(context, (socket) => socket.resume())
  let network = [
    { host: 'a.example', below: false, port },
    { host: 'b.example', below: false, port: 1 },
  ]
  const admit = openPolicy({
    resolve: async () => [{ address: '127.0.0.1', family: 4 }],
    allow: parseOperatorAllow('127.0.0.0/8') ?? NOTHING_ALLOWED,
    ownPorts: () => new Set(),
  })
  const setting = await setUp({ network: () => network, admit })
  const lookUp = (id: number, host: string) => jsonFrame(FRAME.lookup, id, { host, family: 0 })
  setting.child.write(lookUp(1, 'a.example'))
  await hasFrame(setting, 1, FRAME.found)
  setting.child.write(lookUp(2, 'b.example'))
  await hasFrame(setting, 2, FRAME.found)
  setting.child.write(open(3, port, '127.0.0.1'))
  await hasFrame(setting, 3, FRAME.opened)
  setting.tunnel.closeUnlisted()
  assert.is(setting.tunnel.streams, 1)
  network = network.slice(1)
  setting.tunnel.closeUnlisted()
  await hasFrame(setting, 3, FRAME.close)
  setting.child.write(open(4, port, '127.0.0.1'))
  await hasFrame(setting, 4, FRAME.close)
  assert.match(setting.frames.at(-1)?.payload.toString() ?? '', /not in `network`/)
})

tunnels('a connection that the list forbids while its name is resolved is never made', async (context) => {
  let network: TunnelDeps['network'] = () => null
  let connected = 0
  const port = await serve(context, () => connected++)
  const resolving = Promise.withResolvers<void>()
  const asked = Promise.withResolvers<void>()
  const setting = await setUp({
    network: () => network(),
    admit: async ({ host }) => {
      if (host === 'slow.example') {
        asked.resolve()
        await resolving.promise
      }
      return [{ address: '127.0.0.1', family: 4 }]
    },
  })
  setting.child.write(open(1, port, 'slow.example'))
  await asked.promise
  network = () => [{ host: 'a.example', below: false, port: null }]
  setting.tunnel.closeUnlisted()
  resolving.resolve()
  await until(() => setting.frames.length > 0)
  assert.equal(kinds(setting, 1), [FRAME.close])
  assert.match(setting.frames[0]?.payload.toString() ?? '', 'ERR_EGRESS_REFUSED')
  setting.child.write(Buffer.concat([frameOf(FRAME.close, 1), open(2, port)]))
  await hasFrame(setting, 2, FRAME.opened)
  await until(() => connected > 0)
  assert.is(connected, 1) // the listed one, which the kernel accepts after any earlier one
  setting.child.write(frameOf(FRAME.close, 2))
  await until(() => setting.tunnel.streams === 0)
  assert.is(setting.places(), 0)
})

tunnels('a connection without data is closed at the second look', async (context) => {
  const setting = await opened(context, (socket) => socket.on('data', () => {}))
  setting.tunnel.closeIdle()
  setting.child.write(frameOf(FRAME.data, 1, Buffer.from('x')))
  await until(() => setting.tunnel.bytes > 0)
  setting.tunnel.closeIdle()
  assert.is(setting.tunnel.streams, 1)
  await until(() => {
    setting.tunnel.closeIdle()
    return kinds(setting, 1).includes(FRAME.close)
  })
  assert.match(setting.frames.at(-1)?.payload.toString() ?? '', /ETIMEDOUT/)
})

tunnels('all connections close when the child ends', async (context) => {
  let connected = 0
  const setting = await opened(context, (socket) => {
    connected++
    socket.resume().on('close', () => connected--)
    socket.on('end', () => socket.end())
  })
  setting.child.destroy()
  await until(() => connected === 0 && setting.tunnel.streams === 0)
})

tunnels('other work of the service continues while a child moves a lot of data', async (context) => {
  const setting = await opened(context, (socket) => {
    const more = () => {
      while (socket.write(Buffer.alloc(64 << 10)));
    }
    socket.on('drain', more)
    more()
  })
  setting.child.on('data', (chunk: Buffer) => setting.child.write(creditFrame(1, chunk.length)))
  const perTurn: number[] = []
  let before = setting.tunnel.bytes
  for (let turn = 0; turn < 200; turn++) {
    await new Promise(setImmediate)
    perTurn.push(setting.tunnel.bytes - before)
    before = setting.tunnel.bytes
  }
  assert.ok(Math.max(...perTurn) <= 256 << 10, `Expected a bound for each turn, got ${Math.max(...perTurn)}`)
})

tunnels.run()
