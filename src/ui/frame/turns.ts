import { wait } from '../../client/wait.ts'
import { clock } from '../../clock.ts'

/** Reads that are in progress at a time: without HTTP/2, a browser has six connections, and a page follows up to two streams. */
const TOGETHER = 4

const RATE_LIMIT = /r=(\d+);t=(\d+)/

let free = TOGETHER
const waiting: (() => void)[] = []

/** No read is sent before this time of the monotonic clock: the plan of the organization permits none. */
let heldUntil = 0

const hold = (seconds: number): void => {
  heldUntil = Math.max(heldUntil, clock.monotonic() + seconds * 1000)
}

const restMs = (): number => heldUntil - clock.monotonic()

const enter = (): Promise<void> => {
  if (free === 0) return new Promise((resolve) => waiting.push(resolve))
  free--
  return Promise.resolve()
}

const leave = (): void => {
  const next = waiting.shift()
  if (next) next()
  else free++
}

/** Holds the reads that follow for as long as a reply says. */
const heed = ({ status, headers }: Response): void => {
  const [, remaining, seconds] = RATE_LIMIT.exec(headers.get('ratelimit') ?? '') ?? []
  if (remaining === '0') hold(Number(seconds))
  if (status === 429) hold(Number(headers.get('retry-after')) || 1)
}

/**
 * Sends a read when it is its turn, and again while the rate of the plan refuses it. A page has many reads, one for each row of
 * some tables, and a plan can permit five in a second.
 */
export const inTurn = async (send: () => Promise<Response>, signal?: AbortSignal): Promise<Response> => {
  await enter()
  try {
    for (;;) {
      for (let ms = restMs(); ms > 0; ms = restMs()) await wait(ms, signal)
      const response = await send()
      heed(response)
      if (response.status !== 429) return response
      await response.body?.cancel()
    }
  } finally {
    leave()
  }
}
