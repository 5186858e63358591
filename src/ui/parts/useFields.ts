import { type Signal, signal } from '@preact/signals'
import { useMemo } from 'preact/hooks'

type Signals<Values> = { readonly [Name in keyof Values]: Signal<Values[Name]> }

/**
 * The fields of a dialog with their first values, and `begin`, which each opening calls: a dialog keeps nothing of an earlier
 * opening, or a new credential would get what another one was granted.
 */
export const useFields = <Values extends object>(first: Values): Signals<Values> & { begin: () => void } => {
  const fields = useMemo(
    () => Object.fromEntries(Object.entries(first).map(([name, value]) => [name, signal(value)])),
    [],
  ) as Signals<Values>
  const begin = (): void => {
    for (const name of Object.keys(first) as (keyof Values)[]) fields[name].value = first[name]
  }
  return { ...fields, begin }
}
