import { isDeepStrictEqual } from 'node:util'

/** Returns the wanted fields that differ from the current ones; null when none differs. */
export const changesOf = <Fields extends object>(now: Required<Fields>, wanted: Fields): Fields | null => {
  const changed = { ...wanted }
  for (const field in wanted) if (isDeepStrictEqual(now[field], wanted[field])) delete changed[field]
  return Object.keys(changed).length > 0 ? changed : null
}
