import type { ComponentChildren } from 'preact'
import { textOf } from '../frame/api.ts'
import type { Loaded } from '../frame/load.ts'
import { Failure, Loading } from './texts.tsx'

interface Props<T> {
  readonly of: Pick<Loaded<T>, 'data' | 'error' | 'reload'>
  /** Shown until the first reply. */
  readonly loading?: ComponentChildren
  /** For the cell of a table: a failure is a short text. */
  readonly isInline?: boolean
  readonly children: (data: T) => ComponentChildren
}

/** What was loaded. A failure is shown before it and never takes its place: the reader keeps the former data and the place in it. */
export const Shown = <T,>({ of, loading = <Loading />, isInline, children }: Props<T>) => {
  const { data, error, reload } = of
  return (
    <>
      {error &&
        (isInline ? <span class="hint">{textOf(error)} </span> : <Failure error={error} retry={reload} />)}
      {data === undefined ? !error && loading : children(data)}
    </>
  )
}
