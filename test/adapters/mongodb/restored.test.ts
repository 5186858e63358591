import * as assert from 'uvu/assert'
import { isAppError } from '../../../src/errors.ts'
import type { Collection } from '../../../src/ports/readModels.ts'
import { dumped } from '../../support/dumped.ts'
import { engineUrl } from '../../support/engines.ts'
import { type Context, inEnv, opened, refused, spec } from '../../support/mongoReadModels.ts'
import { notHere } from '../../support/notHere.ts'
import { suite } from '../../support/suite.ts'
import { until } from '../../support/until.ts'

const written = (n: number) => [{ id: 'a', doc: { env: 'x', at: `${n}` }, cursor: `${n}` }]

/** Every way to read documents. */
const reads: Record<string, (collection: Collection) => Promise<unknown>> = {
  get: (collection) => collection.get('a'),
  getMany: (collection) => collection.getMany(['a']),
  find: (collection) => collection.find(inEnv),
  scan: (collection) => Array.fromAsync(collection.scan()),
  count: (collection) => collection.count(),
}

const title = 'MongoDB read models: restored under running nodes'
const server = engineUrl('mongodb')
if (server) {
  const restored = suite<Context>(title)
  restored.before.each(async (context) => Object.assign(context, await opened(server)))
  restored.after.each(({ close }) => close())

  for (const [seenBy, see] of [
    ['a read', (another: Context['readModels']) => another.reader(spec).get('a')],
    ['the watch over its versions', (another: Context['readModels']) => another.versions()],
  ] as const) {
    restored(
      `a node that knows later events from ${seenBy} refuses reads until they are there again`,
      async ({ readModels, client, openAnother }) => {
        const another = await openAnother()
        const reader = another.reader(spec)
        const writer = await readModels.writer(spec)
        await writer.write(written(1), '1')
        const restore = await dumped(client)
        await writer.write(written(2), '2')
        await see(another)
        await restore()
        for (const [name, read] of Object.entries(reads)) {
          const failure = await until(() => refused(read(reader)))
          assert.ok(isAppError(failure, 'unavailable'), `${name}: ${String(failure)}`)
          assert.match(failure.message, 'runs__v1 was restored from a backup')
        }
        assert.is(await reader.checkpoint(), '1')
        await (await readModels.writer(spec)).write(written(2), '2')
        assert.equal(await until(() => reader.get('a').catch(() => null)), { env: 'x', at: '2' })
      },
    )
  }

  restored('a node that knows no later events reads', async ({ readModels, client, openAnother }) => {
    const writer = await readModels.writer(spec)
    await writer.write(written(1), '1')
    const restore = await dumped(client)
    await writer.write(written(2), '2')
    await restore()
    assert.equal(await (await openAnother()).reader(spec).get('a'), { env: 'x', at: '1' })
  })

  restored(
    'a writer does not continue after a checkpoint that it has only found',
    async ({ readModels, client, openAnother }) => {
      const first = await readModels.writer(spec)
      await first.write(written(1), '1')
      const restore = await dumped(client)
      await first.write(written(2), '2')
      const writer = await (await openAnother()).writer(spec)
      assert.is(await writer.checkpoint(), '2')
      await restore()
      const failure = await refused(writer.write(written(3), '3'))
      assert.ok(isAppError(failure, 'unavailable'), String(failure))
      assert.match(failure.message, 'has lost writes')
    },
  )

  restored('a version that was created again is no restored one', async ({ readModels, openAnother }) => {
    const another = await openAnother()
    await (await readModels.writer(spec)).write(written(2), '2')
    await another.versions()
    await readModels.drop(spec, () => Promise.resolve(true))
    await (await readModels.writer(spec)).write(written(1), '1')
    assert.equal(await another.reader(spec).get('a'), { env: 'x', at: '1' })
  })

  restored.run()
} else notHere(title, 'set SVC_TEST_MONGODB')
