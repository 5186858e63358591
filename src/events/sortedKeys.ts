/**
 * Returns JSON with the keys of its objects in one order; the value itself if they are already. Objects of classes, such as
 * the text of a large value, remain as they are.
 */
export const sortedKeys = (value: unknown): unknown => {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return sortedList(value)
  return Object.getPrototypeOf(value) === Object.prototype
    ? sortedObject(value as Readonly<Record<string, unknown>>)
    : value
}

const sortedList = (list: readonly unknown[]): readonly unknown[] => {
  let changed: unknown[] | null = null
  for (let at = 0; at < list.length; at++) {
    const sorted = sortedKeys(list[at])
    if (sorted !== list[at]) (changed ??= [...list])[at] = sorted
  }
  return changed ?? list
}

const sortedObject = (object: Readonly<Record<string, unknown>>): object => {
  const names = Object.keys(object)
  let isSorted = true
  for (let at = 1; at < names.length; at++)
    if ((names[at - 1] as string) > (names[at] as string)) isSorted = false
  let changed: Record<string, unknown> | null = isSorted ? null : {}
  if (!isSorted) names.sort()
  for (let at = 0; at < names.length; at++) {
    const name = names[at] as string
    const value = object[name]
    const sorted = sortedKeys(value)
    if (!changed && sorted !== value) {
      changed = {}
      for (const earlier of names.slice(0, at)) set(changed, earlier, object[earlier])
    }
    if (changed) set(changed, name, sorted)
  }
  return changed ?? object
}

/** An assignment to `__proto__` would not add a member. */
const set = (object: Record<string, unknown>, name: string, value: unknown): void => {
  if (name === '__proto__')
    Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true })
  else object[name] = value
}
