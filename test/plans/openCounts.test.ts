import * as assert from 'uvu/assert'
import { isAppError } from '../../src/errors.ts'
import type { DirectoryEnv } from '../../src/projections/directory.ts'
import { OpenCounts } from '../../src/plans/openCounts.ts'
import { termsOf } from '../../src/plans/plans.ts'
import { suite } from '../support/suite.ts'

const most = termsOf.free.counts.streams
/** Two environments of one organization on the free plan, and one of another. */
const orgs: Readonly<Record<string, string>> = { a: 'one', b: 'one', c: 'two' }
const env = (env_id: string): DirectoryEnv | undefined => {
  const org_id = orgs[env_id]
  return org_id === undefined ? undefined : { env_id, name: 'dev', org_id, org_slug: org_id, plan: 'free' }
}

const refusedAfter = (counts: OpenCounts, env_id: string): number | undefined => {
  try {
    counts.enter(env_id, 'streams')
    return undefined
  } catch (error) {
    if (isAppError(error, 'rate_limit_exceeded')) return Number(error.data['retryAfter'])
    throw error
  }
}

const open = suite('what an organization has open on a node')

open('is limited by its plan, in all its environments together', () => {
  const counts = new OpenCounts({ env })
  const leaves = Array.from({ length: most }, (_, i) => counts.enter(i % 2 === 0 ? 'a' : 'b', 'streams'))
  assert.is(refusedAfter(counts, 'a'), 5)
  assert.is(refusedAfter(counts, 'c'), undefined)
  counts.enter('a', 'buildUploads')
  leaves[0]?.()
  leaves[0]?.()
  assert.is(refusedAfter(counts, 'b'), undefined)
  assert.is(refusedAfter(counts, 'b'), 5)
})

open('counts while its work runs, also if that fails', async () => {
  const counts = new OpenCounts({ env })
  const work = Promise.withResolvers<string>()
  const during = counts.during('a', 'streams', () => work.promise)
  assert.is(counts.total('streams'), 1)
  work.resolve('done')
  assert.is(await during, 'done')
  const failed = counts.during('a', 'streams', () => Promise.reject(new Error('failed')))
  assert.is((await failed.catch((error: unknown) => error as Error)).toString(), 'Error: failed')
  assert.is(counts.total('streams'), 0)
})

open('is counted for the environment and for the organization', () => {
  const counts = new OpenCounts({ env })
  const all = () => [
    ...['a', 'b', 'c'].map((env_id) => counts.inEnv(env_id, 'streams')),
    ...['one', 'two'].map((org_id) => counts.inOrg(org_id, 'streams')),
    counts.total('streams'),
  ]
  assert.equal(all(), [0, 0, 0, 0, 0, 0])
  const leaves = ['a', 'a', 'b', 'c'].map((env_id) => counts.enter(env_id, 'streams'))
  counts.enter('a', 'buildUploads')
  assert.equal(all(), [2, 1, 1, 3, 1, 4])
  for (const leave of [leaves[0], leaves[0], leaves[3]]) leave?.()
  assert.equal(all(), [1, 1, 0, 2, 0, 2])
})

open.run()
