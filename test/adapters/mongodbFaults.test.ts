import * as assert from 'uvu/assert'
import { isAppError } from '../../src/errors.ts'
import { engineUrl } from '../support/engines.ts'
import { openFaultProxy } from '../support/faultProxy.ts'
import { type Context, inEnv, opened, refused, spec, spec2 } from '../support/mongoReadModels.ts'
import { notHere } from '../support/notHere.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

const server = engineUrl('mongodb')

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
        const { host } = new URL(url.replace(/^mongodb/, 'http'))
        const [hostname = '', port = '27017'] = host.split(':')
        const proxy = await openFaultProxy({ host: hostname, port: Number(port) })
        try {
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
        } finally {
          await proxy.close()
        }
      },
    )
  }

  faults.run()
} else {
  notHere('MongoDB read models: a server that goes away', 'set SVC_TEST_MONGODB')
}
