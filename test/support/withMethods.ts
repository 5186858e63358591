/** An object whose other methods are replaced, for a fault of one engine. */
export const withMethods = <T extends object>(original: T, other: Partial<T>): T =>
  new Proxy(original, {
    get(target, name) {
      const value: unknown = Reflect.get(other, name) ?? Reflect.get(target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
