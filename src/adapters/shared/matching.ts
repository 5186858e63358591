import type { Recorded } from '../../events/event.ts'
import type { Filter } from '../../ports/eventStore.ts'

/** Returns a function that matches a filter; undefined if the filter matches everything. */
export const matcherOf = ({ types, env_id }: Filter): ((event: Recorded) => boolean) | undefined => {
  if (!types && env_id === undefined) return undefined
  const wanted = types && new Set<string>(types)
  return ({ event, metadata }) =>
    (!wanted || wanted.has(event.type)) && (env_id === undefined || metadata.env_id === env_id)
}
