import { computed, signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { EnvEvent } from '../../client/index.ts'
import { api, ended, isReachable } from './api.ts'
import { isAway } from './away.ts'
import { useReturn } from './repeat.ts'
import { may, session } from './session.ts'

/** The state of the connection that brings live updates; `off`: no page wants it, the reader is away, or the session lacks `env:read`. */
export const live = signal<'off' | 'connecting' | 'live'>('off')

/**
 * After a gap, readers load everything again: an interruption that the client could not bridge, and the time between the first
 * requests of a page and the opening of its feed.
 */
export type Update = EnvEvent | { readonly event: 'gap' }

type Listener = (update: Update) => void

const listeners = new Set<Listener>()
let connection: AbortController | null = null

const notify = (update: Update): void => listeners.forEach((listener) => listener(update))

/** One connection serves the whole page. The client resumes it after its last event, also across a restart. */
const follow = async (signal: AbortSignal): Promise<void> => {
  while (!signal.aborted) {
    live.value = 'connecting'
    let isFirst = true
    const onOpen = (): void => {
      live.value = 'live'
      if (isFirst) notify({ event: 'gap' }) // the feed begins here, after what the page has asked for
      isFirst = false
    }
    try {
      for await (const event of api.followEnv({ signal, onOpen })) notify(event)
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 5000)) // the client has retried for minutes
    }
    if (!signal.aborted) notify({ event: 'gap' })
  }
}

/** The session that the connection belongs to; undefined while there must be none. */
const followed = computed(() =>
  ended.value === 'env' || isAway.value || !may('env', 'read') ? undefined : session.value?.session_id,
)

const begin = (): void => {
  if (connection || !followed.peek()) return
  const opened = new AbortController()
  connection = opened
  void follow(opened.signal)
}

const end = (): void => {
  connection?.abort()
  connection = null
  live.value = 'off'
}

followed.subscribe((present) => {
  end()
  if (present && listeners.size > 0) begin()
})

isReachable.subscribe((reachable) => {
  if (!reachable && connection) live.value = 'connecting'
})

/** Calls back for each update of the environment while the component is shown. */
export const useLive = (listener: Listener): void => {
  const current = useRef(listener)
  current.current = listener
  useEffect(() => {
    const notified: Listener = (update) => current.current(update)
    listeners.add(notified)
    begin()
    return () => {
      listeners.delete(notified)
      if (listeners.size === 0) end()
    }
  }, [])
}

/** The shortest time between two reloads. */
const REST_MS = 1000

/**
 * Calls `reload` after updates whose names begin with one of the prefixes, and that concern it, with a rest between two calls.
 * A hidden page asks nothing: it calls `reload` when the reader returns.
 */
export const useRefresh = (
  prefixes: readonly string[],
  reload: () => void,
  concerns: (update: EnvEvent) => boolean = () => true,
  restMs = REST_MS,
): void => {
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  const current = useRef(reload)
  current.current = reload
  const isDue = useRef(false)
  const reloadIfShown = (): void => {
    isDue.current = document.hidden
    if (!isDue.current) current.current()
  }
  useEffect(() => () => clearTimeout(timer.current), [])
  useReturn(() => {
    if (isDue.current) reloadIfShown()
  })
  useLive((update) => {
    const { event } = update
    const isWanted =
      event === 'gap' || (prefixes.some((prefix) => event.startsWith(prefix)) && concerns(update))
    if (!isWanted) return
    timer.current ??= setTimeout(() => {
      timer.current = undefined
      reloadIfShown()
    }, restMs)
  })
}
