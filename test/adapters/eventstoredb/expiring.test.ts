import * as assert from 'uvu/assert'
import { newId } from '../../../src/ids.ts'
import { facts } from '../../contracts/eventStore/facts.ts'
import { suite } from '../../support/suite.ts'
import { until } from '../../support/until.ts'
import { alone, payloadsIn } from './harness.ts'

const expire = suite('EventStoreDB adapter: retention')

expire(
  'a stream loses expired events, keeps its revisions, and accepts new events',
  alone(async ({ store }) => {
    const [stream, other] = [`e-${newId()}`, `e-${newId()}`]
    await store.append(stream, facts(stream, 3), 'none')
    await store.append(other, facts(other, 3), 'none')
    await store.expire(stream, 1)
    await until(async () => (await payloadsIn(store, stream)).length === 0)
    assert.is((await store.append(stream, facts(stream, 1, 3), 2)).revision, 3)
    assert.equal(await payloadsIn(store, stream), [3])
    assert.equal(await payloadsIn(store, other), [0, 1, 2])
  }),
)

expire.run()
