import type { LogLine } from '../../events/runLog.ts'
import { payloadOf } from '../../events/payload.ts'
import { streamOf } from '../../events/streams.ts'
import type { RunDoc } from '../../projections/runs.ts'
import { MASK } from '../../secrets/webhookRequests.ts'
import type { WebhookRequest } from '../../ports/runtime.ts'
import type { ApiDeps } from '../deps.ts'

type Deps = Pick<ApiDeps, 'store' | 'payloads'>

/** What a run printed so far, and the request that it answers if it is a webhook's. */
export const runLogsOf = async ({ run_id, input_at }: RunDoc, { store, payloads }: Deps) => {
  const lines: { timestamp: string; source: LogLine['source']; text: string }[] = []
  for await (const { event } of store.read(streamOf.runLog(run_id))) {
    if (event.type === 'RunLogged')
      for (const { at: timestamp, source, text } of event.lines) lines.push({ timestamp, source, text })
  }
  return { run_id, request: input_at && (await requestAt(input_at, { store, payloads })), lines }
}

/** Null when the run is no webhook's. What is secret of the request was masked when it was stored (I6). */
const requestAt = async (
  { stream_id, revision }: NonNullable<RunDoc['input_at']>,
  { store, payloads }: Deps,
) => {
  for await (const { event } of store.read(streamOf.stream(stream_id), { from: revision, limit: 1 })) {
    if (event.type !== 'RunRequested' || event.input?.kind !== 'webhook') return null
    const { ref, ...payload } = payloadOf('value', event.input)
    const { method, url, query, headers, ip, auth, body } = (await payloads.load({
      ...payload,
      ref,
    })) as WebhookRequest
    return {
      method,
      url,
      query: query ?? {},
      headers: headers ?? {},
      ip: ip ?? null,
      auth: auth ? MASK : null,
      ...(!ref && body !== undefined && { body }), // a body that is kept outside the log is no log line
    }
  }
  return null
}
