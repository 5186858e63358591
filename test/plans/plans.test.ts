import * as assert from 'uvu/assert'
import type { Plan } from '../../src/events/org.ts'
import { termsOf, UNLIMITED } from '../../src/plans/plans.ts'
import { suite } from '../support/suite.ts'

const limits = suite('SPEC.md, Limits')

const plans: readonly Plan[] = ['free', 'starter', 'pro', 'scale', 'self_host']
const everyPlan = (of: (plan: Plan) => unknown): unknown[] => plans.map(of)

limits('Rate per organization, and Rate limit of the Free plan', () =>
  assert.equal(
    everyPlan((plan) => termsOf[plan].requestsPerSecond),
    [5, 20, 100, null, null],
  ),
)
limits('Max file size: 100 MB, 1 GB, 5 GB, 50 GB', () =>
  assert.equal(
    everyPlan((plan) => termsOf[plan].maxFileBytes),
    [100 * 2 ** 20, 2 ** 30, 5 * 2 ** 30, 50 * 2 ** 30, 50 * 2 ** 30],
  ),
)
limits('Custom domains: Pro or Scale plans only', () =>
  assert.equal(
    everyPlan((plan) => termsOf[plan].maxDomains),
    [0, 0, 3, 50, null],
  ),
)
limits('Plan limits in usage output: -1 means unlimited, and without a subscription all are', () => {
  assert.is(UNLIMITED, -1)
  assert.equal(termsOf.self_host.limits, {
    runs_per_month: -1,
    storage_bytes: -1,
    team_members: -1,
    call_retention_days: -1,
    call_storage_bytes: -1,
  })
})
limits('a higher plan allows no less', () => {
  const rank = (limit: number) => (limit === UNLIMITED ? Infinity : limit)
  for (const name of Object.keys(termsOf.free.limits) as (keyof typeof termsOf.free.limits)[]) {
    const ranked = plans.map((plan) => rank(termsOf[plan].limits[name]))
    assert.equal(
      ranked,
      [...ranked].sort((a, b) => a - b),
      name,
    )
  }
})

limits.run()
