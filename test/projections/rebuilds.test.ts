import * as assert from 'uvu/assert'
import { clock } from '../../src/clock.ts'
import type { ReadModels } from '../../src/ports/readModels.ts'
import { Rebuilds } from '../../src/projections/rebuilds.ts'
import { until } from '../support/until.ts'
import { projecting, withWriter } from './projectedNames.ts'

const requests = projecting('requests of rebuilds')

const NAME = 'names@1'

/** Rebuilds of a node that is paused before its first write, while another node does this. */
const overtaken = (readModels: ReadModels, other: () => Promise<void>): Promise<Rebuilds> => {
  let isPaused = true
  const paused = withWriter(readModels, ({ write }) => ({
    async write(...args) {
      if (isPaused) {
        isPaused = false
        await other()
      }
      return write(...args)
    },
  }))
  return Rebuilds.open(paused)
}

for (const steps of [1, 2, 3])
  requests(`to verify is stored beside the changes of another node: ${steps}`, async ({ readModels }) => {
    const working = await Rebuilds.open(readModels)
    await working.request(NAME, { verify: false })
    const asking = await overtaken(readModels, async () => {
      for (let step = 1; step <= steps; step++) await working.change(NAME, { position: String(step) })
    })
    await asking.request(NAME, { verify: true })
    const { verify, position } = (await working.get(NAME)) ?? {}
    assert.equal({ verify, position }, { verify: true, position: String(steps) })
  })

requests('are not answered by the end of an earlier rebuild', async ({ readModels }) => {
  const asking = await Rebuilds.open(readModels)
  await asking.request(NAME, { verify: false })
  const requested_at = (await asking.get(NAME))?.requested_at
  const working = await overtaken(readModels, async () => {
    await asking.change(NAME, { state: 'failed' })
    await until(() => clock.iso() !== requested_at)
    await asking.request(NAME, { verify: true })
  })
  await working.change(NAME, { state: 'done' })
  assert.is((await asking.get(NAME))?.state, 'waiting')
})

requests.run()
