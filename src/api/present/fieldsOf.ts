import type { Static, TObject } from 'typebox'

/**
 * Returns the fields of a document that the schema of a reply names. Read models keep fields of facts that a later version
 * wrote, and those need not be for clients.
 */
export const fieldsOf = <S extends TObject>(
  { properties }: S,
  doc: Readonly<Record<string, unknown>>,
): Partial<Static<S>> =>
  Object.fromEntries(
    Object.keys(properties).flatMap((name) => (name in doc ? [[name, doc[name]]] : [])),
  ) as Partial<Static<S>>
