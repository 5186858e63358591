import * as assert from 'uvu/assert'
import { Dispatch } from '../../../src/commands/events/dispatch.ts'
import { isAppError, isRetryable } from '../../../src/errors.ts'
import { isOf } from '../../../src/events/event.ts'
import { streamOf } from '../../../src/events/streams.ts'
import { newId } from '../../../src/ids.ts'
import { cause, now, openNode } from '../../support/openNode.ts'
import { suite } from '../../support/suite.ts'

const calls = suite('an svc:call event whose data is missing in the blobs')

calls('cannot be dispatched, and the reason names the blob', async () => {
  const node = await openNode()
  const { env_id } = cause
  const { ref } = await node.payloads.keep({ fn: 'a/b', args: ['x'.repeat(100_000)] }, cause)
  assert.ok(ref)
  const [stream_id, event_id] = [newId(), newId()]
  const place = { stream_id, env_id, event_id, event_type: 'svc:call', source: 'api', create: true, now }
  const stream = streamOf.stream(stream_id)
  await node.aggregates.streams.handle(stream, { type: 'PublishEvent', ...place, data: { ref } }, cause)
  await node.blobs.remove(ref.key)
  for await (const published of node.store.read(stream)) {
    if (!isOf(published, 'EventPublished')) continue
    const error = await new Dispatch(node, { published }).claim('w').then(String, (error: unknown) => error)
    assert.ok(isAppError(error, 'internal_server_error'), String(error))
    assert.is(isRetryable(error), false, 'it would fill the window of the worker')
    assert.match(error.message, `${ref.key} is missing`)
  }
  await node.close()
})

calls.run()
