import { signal } from '@preact/signals'

/** A page that is hidden for this long is not about to be shown again. */
const AWAY_MS = 30_000

/**
 * Whether the reader is away: the page then gives its live connections back. Without HTTP/2, all tabs of a browser share six
 * connections to a service, and three pages of running runs would use all of them.
 */
export const isAway = signal(false)

let timer: ReturnType<typeof setTimeout> | undefined

const look = (): void => {
  clearTimeout(timer)
  if (document.hidden) timer = setTimeout(() => (isAway.value = true), AWAY_MS)
  else isAway.value = false
}

document.addEventListener('visibilitychange', look)
look()
