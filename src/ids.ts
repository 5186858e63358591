import { hash, randomUUID } from 'node:crypto'
import { clock } from './clock.ts'

/** Root of every derived id. Changing it would make redelivered events start their runs again. */
const NAMESPACE = Buffer.from('6f0d0a5e2f435c6e9d0b7a1c54d1a0c3', 'hex')

let count = 0

/**
 * A new id: UUID v7, so indexes on it grow at one end. Milliseconds, a 12-bit counter, then the random
 * part of `randomUUID`, which draws from a pool: packages that ask for random bytes each time take ten times as long.
 */
export const newId = (): string => {
  const time = clock.now().toString(16).padStart(12, '0')
  count = (count + 1) & 0xfff
  return `${time.slice(0, 8)}-${time.slice(8)}-7${count.toString(16).padStart(3, '0')}-${randomUUID().slice(19)}`
}

/**
 * Returns an id for a thing that a command creates; `what` names the thing within the command. Under an
 * `Idempotency-Key` the same request gets the same ids again, also after a crash.
 */
export type NewId = (what: string) => string

/** The same id for the same parts, on every node and every delivery: UUID v5. */
export const derivedId = (...parts: readonly (string | number)[]): string => {
  const digest = digestOf(parts)
  return `${digest.slice(0, 8)}-${digest.slice(8, 12)}-5${tailOf(digest)}`
}

/**
 * An id derived from `base` and the parts that sorts beside `base`: UUID v8, the time of `base` and then the
 * hash. For ids that come in numbers, since random ones touch a page of every index for each.
 */
export const derivedIdBeside = (base: string, ...parts: readonly (string | number)[]): string =>
  `${base.slice(0, 13)}-8${tailOf(digestOf([base, ...parts]))}`

/** When an id of `newId`, or one beside it, was made: milliseconds since 1970. */
export const timeOf = (id: string): number => Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16)

/** Whether it comes from `derivedIdBeside`. */
export const isDerived = (id: string): boolean => id.charAt(14) === '8'

const digestOf = (parts: readonly (string | number)[]): string =>
  hash('sha1', Buffer.concat([NAMESPACE, Buffer.from(parts.join('\n'))]), 'hex')

const tailOf = (digest: string): string => {
  const variant = '89ab'.charAt(Number.parseInt(digest.charAt(16), 16) & 3)
  return `${digest.slice(13, 16)}-${variant}${digest.slice(17, 20)}-${digest.slice(20, 32)}`
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

export const isId = (text: string): boolean => UUID.test(text)
