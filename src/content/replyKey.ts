import { isoOf } from '../clock.ts'
import { newId } from '../ids.ts'

/** The keys of large replies that are kept for an `Idempotency-Key` begin with this. */
export const REPLIES = 'replies/'

/** The same for the replies of one environment. */
export const repliesOf = (env_id: string): string => `${REPLIES}${env_id}/`

/** The key of a reply in the blobs. It contains the day in UTC. `now`: milliseconds since 1970. */
export const replyKey = (env_id: string, now: number): string =>
  `${repliesOf(env_id)}${isoOf(now).slice(0, 10)}/${newId()}.json`

/** The day in the key of a reply. */
export const replyDayOf = (key: string): string => key.split('/')[2] ?? ''
