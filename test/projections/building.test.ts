import * as assert from 'uvu/assert'
import { openReadModels } from '../../src/adapters/embedded/readModels/index.ts'
import { PermanentError } from '../../src/errors.ts'
import { silent } from '../../src/logger.ts'
import { buildingReason, buildingShares } from '../../src/projections/buildingReason.ts'
import { Projectors } from '../../src/projections/projectors.ts'
import { runs } from '../../src/projections/runs.ts'
import { uploads } from '../../src/projections/uploads.ts'
import { watchVersions } from '../../src/projections/watchVersions.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'
import { any, life, newEvents, projecting } from './projectedNames.ts'

const building = projecting('read models that are being built')

building('are named with their shares of the log', async ({ store, readModels, stopping }) => {
  for (let i = 0; i < 20; i++) await store.append(`p-${i}`, newEvents(life(`p-${i}`, 99)), 'none')
  const head = await store.head()
  const waiting = { ...any, name: 'waiting' }
  const projectors = new Projectors({ store, readModels, logger: silent, projections: [any, waiting] })
  const reason = () => buildingReason(buildingShares(projectors.building, { store, head }))
  assert.is(reason(), 'The read models are being built from the log: names@1 (0 %), waiting@1 (0 %)')
  const running = projectors.run(stopping.signal)
  await until(() => projectors.building.length === 0)
  assert.is(reason(), 'The server is starting')
  stopping.abort()
  await running
})

building('have their shares rounded down, so that 100 % is never shown too early', () => {
  const store = { countBetween: (after: string, upTo: string) => Number(upTo) - Number(after) }
  assert.match(
    buildingReason(buildingShares([{ name: 'runs@3', builtTo: '999' }], { store, head: '1000' })),
    /: runs@3 \(99 %\)$/,
  )
})

building('are named alone where the store cannot count', () => {
  const store = { countBetween: () => null }
  const shares = buildingShares([{ name: 'runs@3', builtTo: '5' }], { store, head: '9' })
  assert.match(buildingReason(shares), /: runs@3$/)
})

building('are noticed when they were dropped while the node was silent', async () => {
  const readModels = openReadModels({ dir: tempDir() })
  await readModels.writer(runs)
  let looks = 0
  const watched = {
    versions: () => {
      looks++
      return readModels.versions()
    },
  }
  const end = new AbortController()
  const watching = watchVersions({ readModels: watched, lookMs: 5 }, end.signal).catch(
    (error: unknown) => error,
  )
  await until(() => looks > 2)
  await readModels.writer(uploads) // it is new, so it was not dropped before
  await until(() => looks > 4)
  await readModels.drop(runs, () => Promise.resolve(true))
  const error = await watching
  assert.instance(error, PermanentError)
  assert.match(String(error), `runs@${runs.version} was dropped`)
  await readModels.close()
})

building.run()
