import * as assert from 'uvu/assert'
import { openEventStore } from '../../src/adapters/embedded/eventStore/index.ts'
import { openRateLimiter } from '../../src/adapters/embedded/rateLimiter.ts'
import { useServiceKey } from '../../src/commands/credentials/useServiceKey.ts'
import { openAggregates } from '../../src/domain/aggregates.ts'
import type { Cause } from '../../src/events/event.ts'
import type { Plan } from '../../src/events/org.ts'
import { isAppError } from '../../src/errors.ts'
import { newId } from '../../src/ids.ts'
import { ChangeRates } from '../../src/plans/changeRates.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

const byKey = (env_id: string): Cause => ({ env_id, correlation_id: 'r', actor: 'k', actor_type: 'api-key' })

/** Environments `a` and `a2` of one organization, and `b` of another. */
const ratesOf = (plan: Plan): ChangeRates => {
  const rates = new ChangeRates(openRateLimiter())
  rates.follow({
    env: (env_id) => ({ env_id, name: 'dev', org_id: env_id.charAt(0), org_slug: 'o', plan }),
  })
  return rates
}

/** A command with about a MiB. */
const large = { type: 'Change', value: 'x'.repeat((1 << 20) - 1000) }

const isAdmitted = async (work: () => Promise<unknown> | null): Promise<boolean> => {
  try {
    await work()
    return true
  } catch (error) {
    if (isAppError(error, 'rate_limit_exceeded')) return false
    throw error
  }
}

const admitted = (rates: ChangeRates, cause: Cause, command: object = large): Promise<boolean> =>
  isAdmitted(() => rates.admit(cause, command))

const changes = suite('the changes of an organization in a day')

changes('are limited by their size', async () => {
  const rates = ratesOf('free')
  for (let n = 0; n < 16; n++) assert.ok(await admitted(rates, byKey('a')), String(n))
  assert.not.ok(await admitted(rates, byKey('a')))
})

changes('are limited by their number too, because each takes room in the log', async () => {
  const rates = ratesOf('free')
  let count = 0
  while (await admitted(rates, byKey('a'), { type: 'Change' })) count++
  assert.ok(count < (16 << 20) / 400, String(count))
})

changes('are those of all its environments, and of no other organization', async () => {
  const rates = ratesOf('free')
  for (let n = 0; n < 16; n++) await admitted(rates, byKey('a'))
  assert.not.ok(await admitted(rates, byKey('a2')))
  assert.ok(await admitted(rates, byKey('b')))
})

changes('of the operator and of the service itself are not counted', () => {
  const rates = ratesOf('free')
  const { env_id, correlation_id } = byKey('a')
  for (const actor_type of ['operator', 'system', undefined] as const)
    assert.is(
      rates.admit({ env_id, correlation_id, ...(actor_type && { actor_type }) } as Cause, large),
      null,
      actor_type,
    )
})

changes('are not counted, and cost nothing, on the plan of a self-hosted installation', () =>
  assert.is(ratesOf('self_host').admit(byKey('a'), large), null),
)

changes('are refused with the limit, the time to wait and the way out', async () => {
  const rates = ratesOf('free')
  for (let n = 0; n < 16; n++) await admitted(rates, byKey('a'))
  const error = await rates.admit(byKey('a'), large)?.then(
    () => undefined,
    (failure: unknown) => failure,
  )
  assert.ok(isAppError(error, 'rate_limit_exceeded'))
  assert.match(error.message, /plan free allows changes of 16 MiB per day .* higher plan/)
  assert.ok(Number(error.data?.['retryAfter']) > 60)
})

changes(
  'are admitted however often service keys are used, and the uses have a limit of their own',
  async () => {
    const rates = ratesOf('free')
    const store = openEventStore({ dir: tempDir() })
    const aggregates = openAggregates(store, undefined, rates.admit)
    const key = { id: newId(), api_key_id: newId(), env_id: 'a' }
    let uses = 0
    while (uses < (16 << 20) / 400 && (await isAdmitted(() => useServiceKey({ aggregates }, key)))) uses++
    await store.close()
    assert.ok(uses < (16 << 20) / 400, String(uses))
    for (let n = 0; n < 16; n++) assert.ok(await admitted(rates, byKey('a')), String(n))
  },
)

changes.run()
