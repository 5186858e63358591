import * as assert from 'uvu/assert'
import { suite } from '../support/suite.ts'
import { linkFaults, nodeFaults, planOf, standInFaults } from './plan.ts'

const MINUTES_30 = 30 * 60_000
const cluster = { nodes: ['api 1', 'api 2', 'worker 1'], engines: ['SVC_BLOBS', 'SVC_REDIS'], standIn: true }
const alone = { nodes: ['node'], engines: [], standIn: false }

const plan = suite('the plan of a soak')

plan('is the same for the same seed, and another one for another seed', () => {
  assert.equal(planOf(7, MINUTES_30, cluster), planOf(7, MINUTES_30, cluster))
  assert.not.equal(planOf(7, MINUTES_30, cluster), planOf(8, MINUTES_30, cluster))
})
plan('has every fault within 30 minutes', () => {
  const whats = new Set(planOf(1, MINUTES_30, cluster).map(({ what }) => what))
  assert.equal(
    [...nodeFaults, ...linkFaults, ...standInFaults].filter((what) => !whats.has(what)),
    [],
  )
})
plan('has only faults of nodes if all engines are embedded', () => {
  assert.ok(planOf(1, MINUTES_30, alone).every(({ at }) => at === 'node'))
})
plan('lets no two faults of one node overlap, and ends in time', () => {
  const faults = planOf(1, MINUTES_30, alone)
  for (const [n, { atMs, forMs }] of faults.entries()) {
    const next = faults[n + 1]?.atMs ?? MINUTES_30
    assert.ok(atMs + forMs <= next)
  }
})
plan.run()
