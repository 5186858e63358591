import { clock } from '../../clock.ts'

/** Smaller differences are those of the header, which has whole seconds, and of the way of the reply. */
const NOTICED_MS = 2000

/** How far the clock of the service is ahead of that of the reader, in milliseconds. */
let aheadMs = 0

/** Learns the time of the service from a reply of it. */
export const learnTime = (response: Response): void => {
  const sentAt = Date.parse(response.headers.get('date') ?? '')
  if (Number.isNaN(sentAt)) return
  const ms = sentAt - clock.now()
  aheadMs = Math.abs(ms) < NOTICED_MS ? 0 : ms
}

/** Milliseconds since 1970 by the clock of the service: all times of the pages are its times, and that of the reader may be wrong. */
export const serviceNow = (): number => clock.now() + aheadMs
