import type { CollectionSpec, ReadModels, WritableCollection } from '../../src/ports/readModels.ts'

/** A database whose content is replaced while it is used, as by a restore. */
export const restorable = (first: ReadModels) => {
  let now = first
  const writer = async (spec: CollectionSpec): Promise<WritableCollection> => {
    const { wantsChanges } = await now.writer(spec)
    const on = () => now.writer(spec)
    return {
      ...now.reader(spec),
      get: async (id) => (await on()).get(id),
      checkpoint: async () => (await on()).checkpoint(),
      stored: async (ids) => (await on()).stored(ids),
      entries: async function* () {
        yield* (await on()).entries()
      },
      write: async (...args) => (await on()).write(...args),
      forgetRemovals: async (upTo) => (await on()).forgetRemovals(upTo),
      ...(wantsChanges !== undefined && { wantsChanges }),
    }
  }
  const readModels = new Proxy(first, {
    get(_, name) {
      if (name === 'writer') return writer
      const value: unknown = Reflect.get(now, name, now)
      return typeof value === 'function' ? value.bind(now) : value
    },
  })
  return { readModels, restore: (copy: ReadModels) => (now = copy) }
}
