import { setTimeout as delay } from 'node:timers/promises'
import { clock } from '../../src/clock.ts'
import type { Event, Run } from '../support/build.ts'
import type { SoakClient } from './client.ts'
import type { EnvironmentFollowers } from './followers.ts'

/** Nothing may happen for this long before the work counts as ended. */
const QUIET_MS = 5000
/** The longest time until the work has ended: read models that scan need minutes. The checker then reports what is stuck. */
const SETTLE_MS = 600_000
const POLL_MS = 500

/** Waits until `isSo`, at most `SETTLE_MS`. Resolves with whether it is. */
const waitFor = async (isSo: () => boolean | Promise<boolean>): Promise<boolean> => {
  const deadline = clock.monotonic() + SETTLE_MS
  while (clock.monotonic() < deadline) {
    if (await isSo()) return true
    await delay(POLL_MS)
  }
  return false
}

const countOf = async (client: SoakClient, status: Run['status']): Promise<number> => {
  const answer = await client.attempt('GET', `/runs?limit=1&status=${status}`)
  if (answer?.status !== 200) return NaN
  return (answer.json as { pagination: { total: number } }).pagination.total
}

/**
 * Waits until no run is open, every event is handled, and nothing has happened for a while. Then publishes a last event,
 * and waits until all followers have it. Resolves with its id.
 */
export const settle = async (
  client: SoakClient,
  followers: EnvironmentFollowers,
  report: (line: string) => void,
): Promise<string> => {
  let last = { frames: -1, at: clock.monotonic() }
  const isQuiet = async (): Promise<boolean> => {
    const { created, handled, frames } = followers.seen()
    if (frames !== last.frames) last = { frames, at: clock.monotonic() }
    if (created !== handled || clock.monotonic() < last.at + QUIET_MS) return false
    const open = (await countOf(client, 'running')) + (await countOf(client, 'pending_retry'))
    return open === 0
  }
  if (!(await waitFor(isQuiet))) report(`The work has not ended after ${SETTLE_MS} ms`)
  const answer = await client.keep('POST', '/events', { body: { event_type: 'mark' } })
  const event_id = (answer?.json as { data?: Event } | undefined)?.data?.event_id
  if (event_id === undefined) throw new Error('The last event was not acknowledged')
  if (!(await waitFor(() => followers.received(event_id))))
    report(`The last event did not reach all followers within ${SETTLE_MS} ms`)
  await waitFor(() => followers.seen().created === followers.seen().handled)
  return event_id
}
