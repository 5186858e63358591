import Type, { type Static, type TProperties } from 'typebox'

/** An object with these fields and no others, so that a misspelt field is found. */
export const record = <P extends TProperties>(properties: P) =>
  Type.Object(properties, { additionalProperties: false })

/** The schema of one type of fact. */
export const fact = <T extends string, P extends TProperties>(type: T, properties: P) =>
  record({ type: Type.Literal(type), ...properties })

/**
 * The audit shows a string only if its schema is one of these four (`redact.ts`): a text of another field may be a secret.
 * `audit: 'resource'`: the audit finds the fact by this string.
 */
/** A UUID. */
export const Id = Type.String({ audit: 'resource' })

/** ISO 8601 UTC. */
export const Time = Type.String({ audit: 'text' })

/** The name of a resource that is also found by it, such as the path of a file. */
export const Name = Type.String({ audit: 'resource' })

/** A text that is neither a secret nor content: a caller that may read the environment may read it. */
export const Text = Type.String({ audit: 'text' })

/** The reference to a JSON payload in the blobs that is too large for the log. Size in bytes. */
export const PayloadRef = record({ key: Type.String(), size: Type.Integer(), sha256: Type.String() })
export type PayloadRef = Static<typeof PayloadRef>
