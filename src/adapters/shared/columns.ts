import type { CollectionSpec, Doc } from '../../ports/readModels.ts'

/** A scalar in the form in which it is compared and stored in SQLite. */
export type Column = string | number | Uint8Array | null

/** SQLite sorts NULL, numbers, text and blobs in this order. Booleans are blobs, so that they equal no number. */
const FALSE = Uint8Array.of(0)
const TRUE = Uint8Array.of(1)

/** Sorts before every text. The smallest blob sorts after every text. */
export const LEAST_TEXT = ''
export const LEAST_BLOB = new Uint8Array(0)

export const columnOf = (value: unknown): Column => {
  if (typeof value === 'string') return value
  if (typeof value === 'number') return Number.isFinite(value) ? value : null // like JSON
  if (typeof value === 'boolean') return value ? TRUE : FALSE
  if (value === null || value === undefined) return null
  throw new TypeError(
    `Expected a scalar in an indexed field, got ${Array.isArray(value) ? 'an array' : typeof value}`,
  )
}

export const fieldOf = (doc: Doc, field: string): unknown =>
  Object.hasOwn(doc, field) ? doc[field] : undefined

export const sameColumn = (a: Column, b: Column): boolean =>
  a === b || (a instanceof Uint8Array && b instanceof Uint8Array && a[0] === b[0])

/** Returns each field of the collection's indexes once. */
export const indexedFields = ({ indexes }: CollectionSpec): string[] => [
  ...new Set(indexes.flatMap(({ equal, sort }) => [...equal, sort])),
]

/** The order of sorted fields on every adapter: by type, texts in code point order. */
export const compareColumns = (a: Column, b: Column): number => {
  if (typeof a === 'number' && typeof b === 'number') return a - b
  if (typeof a === 'string' && typeof b === 'string') return Buffer.compare(Buffer.from(a), Buffer.from(b))
  if (a instanceof Uint8Array && b instanceof Uint8Array) return Buffer.compare(a, b)
  return rank(a) - rank(b)
}

const rank = (column: Column): number =>
  column === null ? 0 : typeof column === 'number' ? 1 : typeof column === 'string' ? 2 : 3
