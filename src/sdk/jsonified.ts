/**
 * The JSON of a value of type `T`, as a run returns it. `any` and `unknown` remain. What a run cannot return is `never`:
 * bigints, symbols, bytes, maps, sets and promises. An instance of another class, such as an error, is seen as its fields,
 * because a plain object may have the same type.
 */
export type Jsonified<T> = Value<T, null>

/** `Absent` takes the place of `undefined` and functions, which JSON leaves out of objects alone. */
type Value<T, Absent> = unknown extends T
  ? T
  : T extends ArrayBufferLike | ArrayBufferView // a Buffer has `toJSON`, and is refused
    ? never
    : T extends { toJSON(...args: never): infer Converted }
      ? Content<Converted, Absent>
      : Content<T, Absent>

/** JSON calls no `toJSON` of what `toJSON` returned: it may be `{ ...this }`. */
type Content<T, Absent> = unknown extends T
  ? T
  : T extends Json
    ? T
    : T extends undefined | void | AnyFunction
      ? Absent
      : T extends readonly unknown[]
        ? ListOf<T>
        : T extends bigint | symbol | ReadonlyMap<unknown, unknown> | ReadonlySet<unknown> | Promise<unknown>
          ? never
          : T extends AbortSignal // of `currentRun()`
            ? Record<never, never>
            : T extends { valueOf(): infer Boxed extends string | number | boolean }
              ? Boxed
              : FieldsOf<T> extends infer Fields
                ? { [Key in keyof Fields]: Fields[Key] } // one object, which an editor shows as such
                : never

/** The types of the items of an array are deferred, unlike those of a tuple, so that they may contain the array. */
type ListOf<T extends readonly unknown[]> = T[number][] extends T
  ? T extends unknown[]
    ? Value<T[number], null>[]
    : readonly Value<T[number], null>[]
  : { [Index in keyof T]: Value<T[Index], null> }

type FieldsOf<T> = { [Key in keyof T as Present<T, Key>]: Value<T[Key], never> } & {
  [Key in keyof T as Optional<T, Key>]?: Value<T[Key], never>
}

/** The key if every JSON of the object has it. */
type Present<T, Key extends keyof T> = Key extends symbol
  ? never
  : T[Key] extends AnyFunction
    ? never
    : T[Key] extends Defined<T[Key]>
      ? Key
      : never

/** The key if its value may be undefined. It remains if its value is always undefined, as in `{ ok: true; error?: never }`. */
type Optional<T, Key extends keyof T> = Key extends symbol
  ? never
  : T[Key] extends Defined<T[Key]>
    ? never
    : Key

type Defined<T> = Exclude<T, undefined | void>

type AnyFunction = (...args: never) => unknown

/** A type that is JSON keeps its name. TypeScript could not convert some of these, such as tuples of themselves. */
type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json }
