import { type Activity, followStream } from '../../commands/streams/followStream.ts'
import type { Content } from '../../content/blobContent.ts'
import { isAppError } from '../../errors.ts'
import { StoredJson } from '../../events/rawJson.ts'
import { positionOf, type StreamStart } from '../../commands/streams/startOfStream.ts'
import type { Payloads } from '../../content/payloads.ts'
import type { ApiDeps } from '../deps.ts'
import { presentRun } from '../present/run.ts'
import { frame, frameHead, type SseReply } from './sse.ts'

/** Frames are written together up to this size. A single frame can be megabytes, and the client can be slow. */
const TOGETHER_BYTES = 64 << 10

/**
 * Sends one svc stream until it is complete, the time is over or the client is gone (SPEC.md, Server-sent events).
 * Ids are revisions of the stream: a client that reconnects with one receives the events after it (I5).
 */
export const tailStream = async (
  client: SseReply,
  {
    start,
    project,
    withTimes = false,
  }: { start: StreamStart; project?: string | undefined; withTimes?: boolean },
  deps: Pick<ApiDeps, 'store' | 'aggregates' | 'payloads' | 'sseTimeoutMs' | 'stopping'>,
): Promise<void> => {
  const { stream_id } = start
  const signal = AbortSignal.any([client.gone, AbortSignal.timeout(deps.sseTimeoutMs), deps.stopping])
  let revision = start.after
  for await (const part of followStream(deps, { start, project, signal })) {
    if (part.kind === 'complete') return client.end(complete(stream_id, 'completed', String(part.revision)))
    if (part.kind === 'expired') {
      revision = part.revision
      client.write(frame(String(revision), 'stream:expired', { type: 'stream:expired', stream_id }))
      await client.flushed()
      continue
    }
    let together: Buffer[] = []
    let size = 0
    const send = async () => {
      if (size > 0) client.write(Buffer.concat(together))
      together = []
      size = 0
      await client.flushed()
    }
    for (const activity of part.activities) {
      const { id, type, data, isLarge } = frameOf(activity, deps.payloads, withTimes)
      if (isLarge) {
        await send()
        const { chunks, close } = await openFrame(
          data,
          deps.payloads,
          () => frameOf(withoutValue(activity), deps.payloads, withTimes).data,
        )
        await client.writeFrame(frameHead(id, type), chunks).finally(close) // also if it reads nothing
      } else {
        const bytes = frame(id, type, data)
        together.push(bytes)
        size += bytes.length
      }
      revision = activity.revision
      if (size >= TOGETHER_BYTES) await send()
      if (client.gone.aborted) return
    }
    await send()
    revision = part.revision
  }
  const mayBeComplete = start.mayBeComplete || revision !== start.after // a quiet stream is not complete for a reader that waits at its end
  client.end(complete(stream_id, 'timeout', positionOf({ stream_id, after: revision, mayBeComplete })))
}

const complete = (stream_id: string, reason: 'completed' | 'timeout', next: string): Buffer =>
  frame(next, 'stream:complete', { stream_id, reason, next })

const RUN_EVENTS = {
  started: 'run:start',
  succeeded: 'run:stop',
  failed: 'run:fail',
  cancelled: 'run:cancel',
} as const

/** Opens the data of a large event. A value whose retention period has ended is `null`. */
const openFrame = async (data: unknown, payloads: Payloads, withoutIt: () => unknown): Promise<Content> => {
  try {
    return await payloads.openJson(data)
  } catch (error) {
    if (!isAppError(error, 'not_found')) throw error
    return payloads.openJson(withoutIt())
  }
}

const withoutValue = (activity: Activity): Activity => {
  if (activity.kind === 'data') return { ...activity, payload: { value: null } }
  const { result_ref: _, ...run } = activity.run
  return { ...activity, run: { ...run, result: null } }
}

/** An event of the stream; large data remains in the blobs. */
const frameOf = (activity: Activity, payloads: Payloads, withTimes: boolean) => {
  const id = String(activity.revision)
  if (activity.kind === 'data') {
    const { run_id, data_type, emitted_at } = activity
    const payload = payloads.stored(activity.payload)
    const type = 'stream:data'
    return {
      id,
      type,
      data: { type, run_id, data_type, ...(withTimes && { emitted_at }), payload },
      isLarge: payload instanceof StoredJson,
    }
  }
  const type = RUN_EVENTS[activity.kind]
  const run = presentRun(activity.run, payloads)
  return { id, type, data: { type, run }, isLarge: run.result instanceof StoredJson }
}
