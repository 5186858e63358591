import { deletions, ended, isGone, isUnanswered, recoveries, signIns } from './api.ts'
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'

export interface Loaded<T> {
  /** Undefined until the first reply; afterwards the newest reply, also while the next one is loaded. */
  readonly data: T | undefined
  /** The data is of the former keys, and those of the present ones are loaded. */
  readonly isFormer: boolean
  /** Why the newest request failed. */
  readonly error: Error | undefined
  readonly isLoading: boolean
  readonly reload: () => void
}

/**
 * Loads data when the component appears and whenever `keys` change. A reply that is late is dropped. The former data remains
 * until the next reply, so that a table keeps its rows and their focus. A failure keeps data of the same keys only: rows of
 * another filter do not match this one. Data that is deleted is dropped. What failed because the service did not answer is loaded
 * when it answers again.
 */
export const useLoaded = <T>(
  load: (signal: AbortSignal) => Promise<T>,
  keys: readonly unknown[],
): Loaded<T> => {
  const [state, setState] = useState<Omit<Loaded<T>, 'reload'>>({
    data: undefined,
    isFormer: false,
    error: undefined,
    isLoading: true,
  })
  const isChanged = useRef(false)
  const request = useRef<AbortController | null>(null)
  const isDue = useRef(false)
  const current = useRef(load)
  current.current = load

  const begin = useCallback(() => {
    const own = new AbortController()
    request.current = own
    isDue.current = false
    const isFormer = isChanged.current
    setState((before) => ({ ...before, isFormer, ...(isFormer && { error: undefined }), isLoading: true }))
    const end = (result: Partial<Omit<Loaded<T>, 'reload'>>) => {
      if (request.current !== own) return
      request.current = null
      isChanged.current = false
      setState((before) => ({ ...before, ...result, isFormer: false, isLoading: false }))
      if (isDue.current) begin()
    }
    current.current(own.signal).then(
      (data) => end({ data, error: undefined }),
      (error: unknown) =>
        end({ error: asError(error), ...((isFormer || isGone(error)) && { data: undefined }) }),
    )
  }, [])

  /** Waits for the request in progress: where replies are slower than updates, none would arrive otherwise. */
  const reload = useCallback(() => {
    if (request.current) isDue.current = true
    else if (!ended.peek()) begin()
  }, [])

  const isNew = useRef(true)
  useEffect(() => {
    if (!isNew.current) reload()
    isNew.current = false
  }, [signIns.value, deletions.value])

  const isUnloaded = useRef(false)
  isUnloaded.current = isUnanswered(state.error)
  useEffect(() => {
    if (isUnloaded.current) reload()
  }, [recoveries.value])

  useEffect(() => {
    begin()
    return () => {
      request.current?.abort()
      request.current = null
      isChanged.current = true
    }
  }, keys)

  return { ...state, reload }
}

const asError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)))
