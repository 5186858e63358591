import Type, { type Static } from 'typebox'

/** A UUID. */
export const Id = Type.String()

/** ISO 8601 UTC. */
export const Time = Type.String()

/** A JSON payload too large for the log: where it lies in the blobs. Size in bytes. */
export const PayloadRef = Type.Object({ key: Type.String(), size: Type.Integer(), sha256: Type.String() })
export type PayloadRef = Static<typeof PayloadRef>
