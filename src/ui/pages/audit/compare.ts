import type { Kind, Resource } from './kind.ts'

export interface Compared {
  readonly id: string
  readonly name: string
  readonly difference: 'same' | 'changed' | 'created since' | 'deleted since'
  /** The fields that differ; a resource that exists on one side only has all of them. */
  readonly was: Resource | null
  readonly is: Resource | null
}

/** Matches the resources of a moment with those of the present; those that differ are first. */
export const compare = (
  { id, names }: Pick<Kind, 'id' | 'names'>,
  then: readonly Resource[],
  now: readonly Resource[],
): readonly Compared[] => {
  const before = new Map(then.map((one) => [String(one[id]), one]))
  const after = new Map(now.map((one) => [String(one[id]), one]))
  const all = [...new Set([...before.keys(), ...after.keys()])]
  return all
    .map((key) => {
      const [was, is] = [before.get(key) ?? null, after.get(key) ?? null]
      const known = is ?? was ?? {}
      const name = names
        .map((field) => known[field])
        .filter((text) => typeof text === 'string' && text !== '')
      return { id: key, name: name.join(' ') || key, ...differenceOf(was, is) }
    })
    .toSorted((a, b) => Number(a.difference === 'same') - Number(b.difference === 'same'))
}

const differenceOf = (was: Resource | null, is: Resource | null): Omit<Compared, 'id' | 'name'> => {
  if (!was || !is) return { difference: was ? 'deleted since' : 'created since', was, is }
  const fields = [...new Set([...Object.keys(was), ...Object.keys(is)])].filter(
    (field) => JSON.stringify(was[field]) !== JSON.stringify(is[field]),
  )
  const only = (one: Resource): Resource => Object.fromEntries(fields.map((field) => [field, one[field]]))
  return { difference: fields.length === 0 ? 'same' : 'changed', was: only(was), is: only(is) }
}
