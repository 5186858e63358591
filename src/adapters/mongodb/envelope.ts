import type { Cursor } from '../../events/event.ts'
import type { CollectionSpec, Doc, Scalar, Stored, Write } from '../../ports/readModels.ts'
import { columnOf, fieldOf, indexedFields } from '../shared/columns.ts'

/** A document as it is stored in MongoDB. */
export interface Envelope {
  readonly _id: string
  readonly last: Last
}

/** The newest write. MongoDB compares documents by their first field, so `$max` keeps the newest one. */
export interface Last {
  readonly cursor: Cursor
  /** A removed document stays as a tombstone, so that no older write restores it. */
  readonly gone: boolean
  /** The indexed fields of the document. */
  readonly f: { readonly [field: string]: Scalar }
  /** JSON text, because BSON does not allow every name (`$set`, `a.b`, a null character). */
  readonly doc: string | null
}

/** Returns a function that wraps documents of one version. It throws a TypeError if an indexed field is not a scalar. */
export const enveloperOf = (spec: CollectionSpec): ((write: Write) => Envelope) => {
  const fields = indexedFields(spec)
  const sparse = new Set(spec.indexes.filter((index) => index.sparse).map(({ sort }) => sort))
  return ({ id, doc, cursor }) => {
    const f: Record<string, Scalar> = {}
    for (const field of doc ? fields : []) {
      const value = scalarOf(fieldOf(doc ?? {}, field))
      if (value !== null || !sparse.has(field)) f[field] = value // a sparse index skips a missing field
    }
    return { _id: id, last: { cursor, gone: doc === null, f, doc: doc && JSON.stringify(doc) } }
  }
}

export const docOf = ({ last: { doc } }: Envelope): Doc | null =>
  doc === null ? null : (JSON.parse(doc) as Doc)

export const storedOf = (envelope: Envelope): Stored => ({
  doc: docOf(envelope),
  cursor: envelope.last.cursor,
})

/** Converts a value to the form that indexes and queries use. */
export const scalarOf = (value: unknown): Scalar =>
  typeof value === 'boolean' ? value : (columnOf(value) as Exclude<Scalar, boolean>)
