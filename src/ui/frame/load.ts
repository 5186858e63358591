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
  const isDue = useRef(false)
  const current = useRef(load)
  current.current = load

  const begin = useCallback(() => {
    const own = new AbortController()
    request.current = own
    isDue.current = false
    setState((before) => ({ ...before, isLoading: true }))
    const end = (result: Partial<Omit<Loaded<T>, 'reload'>>) => {
      if (request.current !== own) return
      request.current = null
      setState((before) => ({ ...before, ...result, isLoading: false }))
      if (isDue.current) begin()
    }
    current.current(own.signal).then(
      (data) => end({ data, error: undefined }),
      (error: unknown) => end({ error: asError(error) }),
    )
  }, [])

  /** Waits for the request in progress: where replies are slower than updates, none would arrive otherwise. */
  const reload = useCallback(() => {
    if (request.current) isDue.current = true
    else begin()
  }, [])

  useEffect(() => {
    begin()
    return () => {
      request.current?.abort()
      request.current = null
    }
  }, keys)

  return { ...state, reload }
}

const asError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)))
