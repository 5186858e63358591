import Type, { type TSchema } from 'typebox'

/** Closes an object, and the objects that are its fields, to unknown fields. Records and free JSON stay open: their keys are data. */
export const closed = (schema: TSchema): TSchema => {
  if (!Type.IsObject(schema)) return schema
  const { type: _, required: __, properties: open, ...options } = schema
  const properties = Object.fromEntries(
    Object.entries(open).map(([name, property]) => [name, closed(property)]),
  )
  const object = Type.Object(properties, { ...options, additionalProperties: false })
  return Type.IsOptional(schema) ? Type.Optional(object) : object
}
