import type { PayloadRef } from './scalars.ts'

/** A JSON payload of a fact: in the fact itself, or in the blobs when it is large. */
export interface Payload<Value = unknown> {
  readonly value?: Value | undefined
  readonly ref?: PayloadRef | undefined
}

/** The two fields of a fact for one payload: `name` for the value itself, `name_ref` for its reference to the blobs. */
export type PayloadFields<Name extends string, Value = unknown> = { readonly [K in Name]?: Value } & {
  readonly [K in `${Name}_ref`]?: PayloadRef
}

/** The payload as fields of a fact: only one of the two is set. An absent value is the `null` of JSON. */
export function payloadFields<Name extends string, Value>(
  name: Name,
  payload: Payload<Value>,
): PayloadFields<Name, Value>
export function payloadFields(name: string, { value, ref }: Payload): Record<string, unknown> {
  return ref ? { [`${name}_ref`]: ref } : { [name]: value ?? null }
}

/** Returns the payload from the fields of a fact or document. */
export const payloadOf = <Name extends string, Value>(
  name: Name,
  fields: PayloadFields<Name, Value>,
): Payload<Value> => {
  const values: { readonly [K in Name]?: Value } = fields
  const refs: { readonly [K in `${Name}_ref`]?: PayloadRef } = fields
  return { value: values[name], ref: refs[`${name}_ref`] }
}
