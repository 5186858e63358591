import { v5, v7 } from 'uuid'

/** Root of every derived id. Changing it would make redelivered events start their runs again. */
const NAMESPACE = '6f0d0a5e-2f43-5c6e-9d0b-7a1c54d1a0c3'

/** A new id. Time-ordered, so indexes on it grow at one end. */
export const newId = (): string => v7()

/** The same id for the same parts, on every node and every delivery. */
export const derivedId = (...parts: readonly (string | number)[]): string => v5(parts.join('\n'), NAMESPACE)

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

export const isId = (text: string): boolean => UUID.test(text)
