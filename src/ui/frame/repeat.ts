import { useEffect, useRef } from 'preact/hooks'

/** Listens for the reader, who returns from another window or tab; returns what ends it. */
export const onReturn = (act: () => void): (() => void) => {
  const ifShown = (): void => {
    if (!document.hidden) act()
  }
  addEventListener('focus', ifShown)
  document.addEventListener('visibilitychange', ifShown)
  return () => {
    removeEventListener('focus', ifShown)
    document.removeEventListener('visibilitychange', ifShown)
  }
}

/** Loads again when the reader returns: something may have been deployed or changed in a terminal. */
export const useReturn = (reload: () => void): void => {
  const current = useRef(reload)
  current.current = reload
  useEffect(() => onReturn(() => current.current()), [])
}

/** The pause between two looks at what a deployment changes. */
export const DEPLOYED_MS = 5000

/** The pause between two looks at a period that ends now: it moves on although nothing happens. */
export const PERIOD_MS = 60_000

/** Loads again at intervals, for states of which the service sends no updates. A hidden page asks nothing. */
export const useRepeat = (reload: () => void, ms: number, isOn = true): void => {
  const current = useRef(reload)
  current.current = reload
  useEffect(() => {
    if (!isOn) return
    const timer = setInterval(() => {
      if (!document.hidden) current.current()
    }, ms)
    return () => clearInterval(timer)
  }, [ms, isOn])
}
