import Type, { type Static, type TProperties } from 'typebox'

/** An object with these fields and no others, so that a misspelt field is found. */
export const record = <P extends TProperties>(properties: P) =>
  Type.Object(properties, { additionalProperties: false })

/** The schema of one type of fact. */
export const fact = <T extends string, P extends TProperties>(type: T, properties: P) =>
  record({ type: Type.Literal(type), ...properties })

/** A UUID. */
export const Id = Type.String()

/** ISO 8601 UTC. */
export const Time = Type.String()

/** The reference to a JSON payload in the blobs that is too large for the log. Size in bytes. */
export const PayloadRef = record({ key: Type.String(), size: Type.Integer(), sha256: Type.String() })
export type PayloadRef = Static<typeof PayloadRef>
