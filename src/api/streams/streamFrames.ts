import { type Activity, followStream } from '../../commands/streams/followStream.ts'
import type { StreamStart } from '../../commands/streams/startOfStream.ts'
import type { Payloads } from '../../content/payloads.ts'
import type { ApiDeps } from '../deps.ts'
import { presentRun } from '../present/run.ts'
import { frame, type SseReply } from './sse.ts'

/** Frames are written together up to this size. A single frame can be megabytes, and the client can be slow. */
const TOGETHER_BYTES = 64 << 10

/**
 * Sends one svc stream until it is complete, the time is over or the client is gone (SPEC.md, Server-sent events).
 * Ids are revisions of the stream: a client that reconnects with one receives the events after it (I5).
 */
export const tailStream = async (
  client: SseReply,
  { start, project }: { start: StreamStart; project?: string | undefined },
  deps: Pick<ApiDeps, 'store' | 'aggregates' | 'payloads' | 'sseTimeoutMs' | 'stopping'>,
): Promise<void> => {
  const { stream_id } = start
  const signal = AbortSignal.any([client.gone, AbortSignal.timeout(deps.sseTimeoutMs), deps.stopping])
  let revision = start.after
  for await (const part of followStream(deps, { start, project, signal })) {
    if (part.kind === 'complete') return client.end(complete(stream_id, 'completed', part.revision))
    let together: Buffer[] = []
    let size = 0
    const send = async () => {
      if (size > 0) client.write(Buffer.concat(together))
      together = []
      size = 0
      await client.flushed()
    }
    for (const activity of part.activities) {
      const bytes = await activityFrame(activity, deps.payloads)
      revision = activity.revision
      together.push(bytes)
      size += bytes.length
      if (size >= TOGETHER_BYTES) await send()
      if (client.gone.aborted) return
    }
    await send()
    revision = part.revision
  }
  client.end(complete(stream_id, 'timeout', revision))
}

const complete = (stream_id: string, reason: 'completed' | 'timeout', revision: number): Buffer =>
  frame(String(revision), 'stream:complete', { stream_id, reason, next: String(revision) })

const RUN_EVENTS = {
  started: 'run:start',
  succeeded: 'run:stop',
  failed: 'run:fail',
  cancelled: 'run:cancel',
} as const

const activityFrame = async (activity: Activity, payloads: Payloads): Promise<Buffer> => {
  const id = String(activity.revision)
  if (activity.kind === 'data') {
    const { run_id, data_type } = activity
    const type = 'stream:data'
    return frame(id, type, { type, run_id, data_type, payload: await payloads.load(activity.payload) })
  }
  const type = RUN_EVENTS[activity.kind]
  return frame(id, type, { type, run: await presentRun(activity.run, payloads) })
}
