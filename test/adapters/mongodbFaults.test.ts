import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { pipeline } from 'node:stream/promises'
import * as assert from 'uvu/assert'
import { isAppError } from '../../src/errors.ts'
import { engineUrl } from '../support/engines.ts'
import { closeBeforeWrite } from '../support/closedBeforeWrite.ts'
import { type FaultProxy, openFaultProxy } from '../support/faultProxy.ts'
import { type Context, inEnv, opened, refused, spec, spec2 } from '../support/mongoReadModels.ts'
import { notHere } from '../support/notHere.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

const server = engineUrl('mongodb')

const throughProxy = async (url: string, work: (proxy: FaultProxy) => Promise<void>): Promise<void> => {
  const { host } = new URL(url.replace(/^mongodb/, 'http'))
  const [hostname = '', port = '27017'] = host.split(':')
  const proxy = await openFaultProxy({ host: hostname, port: Number(port) })
  try {
    await work(proxy)
  } finally {
    await proxy.close()
  }
}

/** Calls `work` with the URL of a proxy, and with what clients have sent through it so far. */
const recorded = async (
  url: string,
  work: (through: string, sent: () => string) => Promise<void>,
): Promise<void> => {
  const { hostname, port } = new URL(url.replace(/^mongodb/, 'http'))
  let sent = ''
  const proxy = createServer((client) => {
    const engine = connect({ host: hostname, port: Number(port || 27017) })
    client.on('data', (bytes) => (sent += bytes.toString('latin1')))
    pipeline(client, engine, client).catch(() => {})
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  try {
    const { port: open } = proxy.address() as AddressInfo
    await work(url.replace(`${hostname}:${port}`, `127.0.0.1:${open}`), () => sent)
  } finally {
    proxy.close()
  }
}

if (server) {
  const faults = suite<Context>('MongoDB read models: a server that goes away', {
    timeoutMs: 60_000,
  })
  faults.before.each(async (context) => Object.assign(context, await opened(server)))
  faults.after.each(({ close }) => close())

  for (const fault of ['refuse', 'blackhole', 'reset'] as const) {
    faults(
      `${fault}: every call is unavailable, and succeeds again after the fault`,
      async ({ url, openAnother }) => {
        await throughProxy(url, async (proxy) => {
          const readModels = await openAnother(proxy.url(url))
          const writer = await readModels.writer(spec)
          const reader = readModels.reader(spec)
          await writer.write([{ id: 'a', doc: { env: 'x' }, cursor: '1' }], '1')
          proxy[fault]()
          const errors = await Promise.all([
            refused(reader.get('a')),
            refused(reader.find(inEnv)),
            refused(Array.fromAsync(reader.scan())),
            refused(writer.stored(['a'])),
            refused(writer.write([{ id: 'a', doc: { env: 'y' }, cursor: '2' }], '2')),
            refused(readModels.writer(spec2)),
            refused(readModels.versions()),
            refused(readModels.drop(spec, () => Promise.resolve(true))),
          ])
          for (const error of errors) assert.ok(isAppError(error, 'unavailable'), String(error))
          await proxy.heal()
          const write = () =>
            writer.write([{ id: 'a', doc: { env: 'z' }, cursor: '3' }], '3').then(() => true)
          await until(write)
          assert.equal(await reader.get('a'), { env: 'z' })
          assert.is(await reader.checkpoint(), '3')
        })
      },
    )
  }

  faults(
    'a connection that ends while the driver checks the server: the next outage passes too',
    ({ url, openAnother }) =>
      throughProxy(url, async (proxy) => {
        const check = closeBeforeWrite(proxy.port, { connection: 1, write: 2 }) // the first check opens the connection
        try {
          const readModels = await openAnother(proxy.url(url))
          const writer = await readModels.writer(spec)
          await check.closed
          proxy.halfClose()
          await refused(writer.stored(['a']))
          await proxy.heal()
          await until(() => writer.write([{ id: 'a', doc: { env: 'x' }, cursor: '1' }], '1').then(() => true))
          assert.equal(await readModels.reader(spec).get('a'), { env: 'x' })
        } finally {
          check.stop()
        }
      }),
  )

  faults(
    'a connection that ends before a command: its place in the pool is free again',
    ({ url, openAnother }) =>
      throughProxy(url, async (proxy) => {
        const command = closeBeforeWrite(proxy.port, { connection: 2, write: 20 })
        try {
          const readModels = await openAnother(`${proxy.url(url)}?maxPoolSize=1`)
          const reader = readModels.reader(spec)
          let error: unknown = null
          while (error === null) error = await refused(reader.get('a'))
          await command.closed
          assert.ok(isAppError(error, 'unavailable'), String(error))
          await until(() => reader.get('a').then(() => true))
        } finally {
          command.stop()
        }
      }),
  )

  faults('a search that its caller has given up ends on the server, too', ({ url, openAnother }) =>
    recorded(url, async (through, sent) => {
      const readModels = await openAnother(through)
      const writer = await readModels.writer(spec)
      await writer.write([{ id: 'a', doc: { env: 'x', at: '1' }, cursor: '1' }], '1')
      const before = sent().length
      const found = await readModels.reader(spec).find({ ...inEnv, from: '0', before: '2', offset: 1 })
      assert.is(found.total, 1)
      const commands = sent().slice(before)
      for (const command of ['find', 'count']) {
        const at = commands.indexOf(`${command}\0`)
        assert.ok(at >= 0, `no ${command} was sent`)
        assert.ok(commands.indexOf('maxTimeMS\0', at) > at, `${command} has no limit`)
      }
    }),
  )

  faults(
    'a writer does not continue after a checkpoint that its server has lost, as by a restore or a rollback',
    async ({ readModels, client }) => {
      const writer = await readModels.writer(spec)
      const doc = { env: 'x' }
      await writer.write([{ id: 'a', doc, cursor: '1' }], '1')
      await writer.write([{ id: 'b', doc, cursor: '2' }], '2')
      const rows = client.db().collection<{ _id: string }>('versions')
      await rows.updateOne({ _id: 'runs__v1' }, { $set: { checkpoint: '1' } })
      const error = await refused(writer.write([{ id: 'c', doc, cursor: '3' }], '3'))
      assert.ok(isAppError(error, 'unavailable'), String(error))
      const next = await readModels.writer(spec)
      assert.is(await next.checkpoint(), '1')
      await next.write([{ id: 'b', doc, cursor: '2' }], '2')
      assert.is(await next.checkpoint(), '2')
    },
  )

  faults.run()
} else {
  notHere('MongoDB read models: a server that goes away', 'set SVC_TEST_MONGODB')
}
