import { streamOf } from '../../src/events/streams.ts'
import { newId } from '../../src/ids.ts'
import { openNode } from '../support/openNode.ts'

/** Publishes events of 62 KB and folds them into all read models, in a process whose heap is limited. */
const EVENTS = 4504
const TOGETHER = 8
const text = 'x'.repeat(62_000)

const node = await openNode()
const cause = { env_id: newId(), correlation_id: 'test' }
for (let published = 0; published < EVENTS; published += TOGETHER) {
  await Promise.all(
    Array.from({ length: TOGETHER }, (_, n) => {
      const [stream_id, event_id] = [newId(), newId()]
      return node.aggregates.streams.handle(
        streamOf.stream(stream_id),
        {
          type: 'PublishEvent',
          stream_id,
          env_id: cause.env_id,
          event_id,
          event_type: 'large',
          data: { value: `${published + n} ${text}` }, // each has a text of its own
          source: 'api',
          create: true,
          now: '2026-05-01T10:00:00.000Z',
        },
        cause,
        { fresh: true },
      )
    }),
  )
  await node.views.settled('events')
}
const { env_id } = cause
const { total } = await node.views.events.find({ equal: { env_id }, sort: 'order', limit: 1, offset: 0 })
console.log(total)
await node.close()
