import type { Cursor } from '../../events/event.ts'
import type { CollectionSpec, Doc, Scalar, Stored, Write } from '../../ports/readModels.ts'
import { columnOf, fieldOf, indexedFields } from '../shared/columns.ts'

/** A document as MongoDB holds it. */
export interface Envelope {
  readonly _id: string
  readonly last: Last
}

/** What the newest write left. MongoDB compares such documents by their first field: `$max` keeps the newest. */
export interface Last {
  readonly cursor: Cursor
  /** A removal stays as a tombstone, so that no older write brings the document back. */
  readonly gone: boolean
  /** The indexed fields of the document. */
  readonly f: { readonly [field: string]: Scalar }
  /** As JSON text: a name in a document may be anything (`$set`, `a.b`, a null character), BSON's may not. */
  readonly doc: string | null
}

/** Makes the envelopes of one version's documents. Throws a TypeError when an indexed field is no scalar. */
export const enveloperOf = (spec: CollectionSpec): ((write: Write) => Envelope) => {
  const fields = indexedFields(spec)
  const sparse = new Set(spec.indexes.filter((index) => index.sparse).map(({ sort }) => sort))
  return ({ id, doc, cursor }) => {
    const f: Record<string, Scalar> = {}
    for (const field of doc ? fields : []) {
      const value = scalarOf(fieldOf(doc ?? {}, field))
      if (value !== null || !sparse.has(field)) f[field] = value // missing, it is in no sparse index
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

/** A value as its index holds it and as queries ask for it. */
export const scalarOf = (value: unknown): Scalar =>
  typeof value === 'boolean' ? value : (columnOf(value) as Exclude<Scalar, boolean>)
