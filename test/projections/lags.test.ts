import * as assert from 'uvu/assert'
import { PermanentError } from '../../src/errors.ts'
import { silent } from '../../src/logger.ts'
import type { Projection } from '../../src/projections/projection.ts'
import { Projectors } from '../../src/projections/projectors.ts'
import { until } from '../support/until.ts'
import { any, life, newEvents, projecting } from './projectedNames.ts'

const lags = projecting('the lag of a read model')

lags('is 0 while it contains the whole log, and grows while its fold is stopped', async (context) => {
  const { store, readModels, stopping } = context
  const stopped: Projection = {
    ...any,
    name: 'stopped',
    decidesAccess: true,
    evolve: () => {
      throw new PermanentError('internal_server_error', 'The fold fails')
    },
  }
  const projectors = new Projectors({ store, readModels, logger: silent, projections: [any, stopped] })
  const lagOf = async (name: string) => (await projectors.lags()).find((lag) => lag.name === name)
  assert.equal(await projectors.lags(), []) // another node may project
  const running = projectors.run(stopping.signal)
  await until(async () => (await lagOf('stopped@1'))?.ms === 0)
  await store.append('p-1', newEvents(life('p-1', 10)), 'none')
  const late = await until(async () => {
    const lag = await lagOf('stopped@1')
    return (await lagOf('names@1'))?.ms === 0 && lag && lag.ms > 0 ? lag : undefined
  })
  assert.ok((late.facts ?? 0) > 0)
  assert.is((await lagOf('names@1'))?.facts, 0)
  await until(async () => ((await lagOf('stopped@1'))?.ms ?? 0) > late.ms)
  stopping.abort()
  await running
  assert.equal(await projectors.lags(), [])
})

lags.run()
