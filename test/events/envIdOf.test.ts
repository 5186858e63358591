import * as assert from 'uvu/assert'
import { isAppError } from '../../src/errors.ts'
import { envIdOf } from '../../src/events/event.ts'
import { suite } from '../support/suite.ts'

const event = { type: 'WorkerStopped', worker_id: 'w', at: '2026-05-01T10:00:00.000Z' } as const
const refusal = (fact: Parameters<typeof envIdOf>[0]): Error => {
  try {
    envIdOf(fact)
  } catch (error) {
    if (isAppError(error, 'internal_server_error')) return error
    throw error
  }
  throw new Error('Expected a refusal')
}

const environment = suite('the environment of a fact')

environment('is the one its metadata names', () =>
  assert.is(envIdOf({ event, metadata: { env_id: 'e', correlation_id: 'c' } }), 'e'),
)

environment('is an error that names the fact when the fact has none', () => {
  const metadata = { correlation_id: 'c', v: 2 }
  const stored = { id: 'i', stream: 'worker-w', revision: 3, cursor: '0000000000000007', at: '' }
  const { message } = refusal({ ...stored, event, metadata })
  assert.is(
    message,
    'Expected an env_id on the fact WorkerStopped v2, id i, revision 3 of worker-w, cursor 0000000000000007, got none',
  )
})

environment('is an error for a fact that is not stored yet, too', () =>
  assert.is(
    refusal({ event, metadata: { correlation_id: 'c' }, revision: 3 }).message,
    'Expected an env_id on the fact WorkerStopped v1, got none',
  ),
)

environment.run()
