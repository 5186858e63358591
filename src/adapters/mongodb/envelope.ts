import { clock } from '../../clock.ts'
import type { Cursor } from '../../events/event.ts'
import type { CollectionSpec, Doc, Scalar, Stored, Write } from '../../ports/readModels.ts'
import { columnOf, fieldOf, indexedFields } from '../shared/columns.ts'

/**
 * The last write of a document. The order of its fields matters: `$max` compares objects field by field, so the
 * greater cursor wins (4.4 and newer, atomically, in one command), and of two writes as of one cursor the first,
 * because `turn` only goes down.
 */
export interface Last {
  readonly cursor: Cursor
  readonly turn: number
  /** A removal stays as a tombstone, so that no older write brings the document back. */
  readonly gone: boolean
  /** The indexed fields of the document. */
  readonly f: { readonly [field: string]: Scalar }
  /** As JSON text: a name in a document may be anything (`$set`, `a.b`, a null character), BSON's may not. */
  readonly doc: string | null
}

/** A document as MongoDB holds it. */
export interface Envelope {
  readonly _id: string
  readonly last: Last
}

/** Counts down over restarts too, as long as a process writes fewer than a thousand documents a millisecond. */
let turn = -clock.now() * 1000

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
    return {
      _id: id,
      last: { cursor, turn: --turn, gone: doc === null, f, doc: doc && JSON.stringify(doc) },
    }
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
