import { useCallback, useEffect, useRef, useState } from 'preact/hooks'

export interface Loaded<T> {
  /** Undefined until the first reply; afterwards the newest reply, also while the next one is loaded. */
  readonly data: T | undefined
  /** Why the newest request failed. */
  readonly error: Error | undefined
  readonly isLoading: boolean
  readonly reload: () => void
}

/**
 * Loads data when the component appears and whenever `keys` change. A reply that is late is dropped. The former data remains
 * until the next reply, so that a table keeps its rows and their focus.
 */
export const useLoaded = <T>(
  load: (signal: AbortSignal) => Promise<T>,
  keys: readonly unknown[],
): Loaded<T> => {
  const [state, setState] = useState<Omit<Loaded<T>, 'reload'>>({
    data: undefined,
    error: undefined,
    isLoading: true,
  })
  const request = useRef<AbortController | null>(null)
  const current = useRef(load)
  current.current = load

  const reload = useCallback(() => {
    request.current?.abort()
    const own = new AbortController()
    request.current = own
    setState((before) => ({ ...before, isLoading: true }))
    current.current(own.signal).then(
      (data) => {
        if (request.current === own) setState({ data, error: undefined, isLoading: false })
      },
      (error: unknown) => {
        if (own.signal.aborted || request.current !== own) return
        setState((before) => ({ ...before, error: asError(error), isLoading: false }))
      },
    )
  }, [])

  useEffect(() => {
    reload()
    return () => request.current?.abort()
  }, keys)

  return { ...state, reload }
}

const asError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)))
