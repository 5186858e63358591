import { isDeepStrictEqual } from 'node:util'

/** The wanted fields that differ from what there is; null when none does. */
export const changesOf = <Fields extends object>(now: Required<Fields>, wanted: Fields): Fields | null => {
  const changed = { ...wanted }
  for (const field in wanted) if (isDeepStrictEqual(now[field], wanted[field])) delete changed[field]
  return Object.keys(changed).length > 0 ? changed : null
}
