import { useEffect, useRef } from 'preact/hooks'

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
