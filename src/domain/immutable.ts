/** The same value without the operations that change it, at every depth. */
export type Immutable<T> =
  T extends ReadonlyMap<infer K, infer V>
    ? ReadonlyMap<K, Immutable<V>>
    : T extends ReadonlySet<infer V>
      ? ReadonlySet<V>
      : T extends object
        ? { readonly [P in keyof T]: Immutable<T[P]> }
        : T
