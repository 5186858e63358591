import * as assert from 'uvu/assert'
import { requestRun, type RunToRequest } from '../../../src/commands/runs/requestRun.ts'
import { WaitingCalls } from '../../../src/loops/waitingCalls.ts'
import { openAggregates } from '../../../src/domain/aggregates.ts'
import { AppError } from '../../../src/errors.ts'
import { newId } from '../../../src/ids.ts'
import type { EventStore } from '../../../src/ports/eventStore.ts'
import { cause, openNode } from '../../support/openNode.ts'
import { suite } from '../../support/suite.ts'

const run: RunToRequest = {
  run_type: 'run',
  build_id: 'build',
  project_id: 'project',
  project_name: 'shop',
  target: { ns: 'hooks', var: 'POST' },
  timeout: 1000,
}

const request = suite('a request of a run')

request('that was offered and cannot be stored leaves no follower', async () => {
  const node = await openNode()
  const { store } = node
  const followers: AbortSignal[] = []
  const full: EventStore = {
    ...store,
    append: () => Promise.reject(new AppError('unavailable', 'No append')),
    follow: (stream, options) => {
      followers.push(options.signal)
      return store.follow(stream, options)
    },
  }
  const calls = new WaitingCalls()
  const deps = {
    store: full,
    aggregates: openAggregates(full),
    claimer: null,
    offers: { make: () => true },
    calls,
  }
  const requested = requestRun(deps, { run, input: { kind: 'args', value: [] } }, { cause, newId })
  assert.is(await requested.then(String, (error: AppError) => error.code), 'unavailable')
  assert.equal(
    followers.map(({ aborted }) => aborted),
    [true],
  )
  assert.is(calls.count, 0)
  await node.close()
})

request.run()
