import type { RunLog } from '../../commands/runs/readRunLog.ts'
import type { Payloads } from '../../content/payloads.ts'
import { isAppError } from '../../errors.ts'
import type { Payload } from '../../events/payload.ts'
import type { WebhookRequest } from '../../ports/runtime.ts'
import { bodyOf } from '../../sdk/input.ts'
import { MASK } from '../../events/mask.ts'

/** Returns the output of a run, with the request of a webhook run. */
export const presentRunLog = async (run_id: string, { lines, request }: RunLog, payloads: Payloads) => ({
  run_id,
  request: request && (await keptRequest(request, payloads)),
  lines: lines.map(({ at: timestamp, source, text }) => ({ timestamp, source, text })),
})

/** A request whose retention period has ended is null, as it is when its fact has expired: the output remains. */
const keptRequest = async (request: Payload, payloads: Payloads) => {
  try {
    return await presentRequest(request, payloads)
  } catch (error) {
    if (!isAppError(error, 'not_found')) throw error
    return null
  }
}

/** Returns the request of a webhook run, with its secrets masked. */
export const presentRequest = async (payload: Payload, payloads: Payloads) => {
  const stored = (await payloads.load(payload)) as WebhookRequest
  const { method, url, query, headers, ip, auth, 'body-raw': raw } = stored
  const body = stored.body ?? (raw === undefined ? undefined : bodyOf(raw, headers?.['content-type']))
  return {
    method,
    url,
    query: query ?? {},
    headers: headers ?? {},
    ip: ip ?? null,
    auth: auth ? MASK : null,
    ...(!payload.ref && body !== undefined && { body }), // the body of a request over 64 KiB is omitted
  }
}
