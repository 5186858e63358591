import { hash, randomUUID } from 'node:crypto'
import { clock } from './clock.ts'

/** Root of every derived id. Changing it would make redelivered events start their runs again. */
const NAMESPACE = Buffer.from('6f0d0a5e2f435c6e9d0b7a1c54d1a0c3', 'hex')

let count = 0
/** The milliseconds of the last id and its digits, because ids are created in bursts. */
let lastMs = -1
let lastDigits = ''

/**
 * A new UUID v7, so that indexes grow at one end: milliseconds, a 12-bit counter, then the random part of `randomUUID`.
 * Its pool of random bytes is ten times as fast as packages that request bytes for each id.
 */
export const newId = (): string => {
  const now = clock.now()
  if (now !== lastMs) {
    const time = now.toString(16).padStart(12, '0')
    lastMs = now
    lastDigits = `${time.slice(0, 8)}-${time.slice(8)}-7`
  }
  count = (count + 1) & 0xfff
  return lastDigits + (COUNTS[count] ?? '') + randomUUID().slice(18)
}

/** The digits of each count. */
const COUNTS = Array.from({ length: 0x1000 }, (_, n) => n.toString(16).padStart(3, '0'))

/**
 * Returns an id for a resource that a command creates; `what` identifies it within the command. With an
 * `Idempotency-Key`, a repeated request gets the same ids, also after a crash.
 */
export type NewId = (what: string) => string

/** Derives a UUID v5: the same parts get the same id on every node and in every delivery. */
export const derivedId = (...parts: readonly (string | number)[]): string => {
  const digest = digestOf(parts)
  return `${digest.slice(0, 8)}-${digest.slice(8, 12)}-5${tailOf(digest)}`
}

/**
 * Derives a UUID v8 from `base` and the parts: the time of `base`, then a hash. Such ids sort beside `base`; many
 * random ids would each touch another page of every index.
 */
export const derivedIdBeside = (base: string, ...parts: readonly (string | number)[]): string =>
  `${timePartOf(base)}-8${tailOf(digestOf([base, ...parts]))}`

/** The part of an id from `newId` or `derivedIdBeside` that contains its creation time. */
export const timePartOf = (id: string): string => id.slice(0, 13)

/** Creation time of an id from `newId` or `derivedIdBeside`, milliseconds since 1970. */
export const timeOf = (id: string): number => Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16)

/** Whether an id contains its creation time. */
export const hasTime = (id: string): boolean => isId(id) && '78'.includes(id.charAt(14))

/** Whether an id comes from `derivedIdBeside`. */
export const isDerived = (id: string): boolean => id.charAt(14) === '8'

const digestOf = (parts: readonly (string | number)[]): string =>
  hash('sha1', Buffer.concat([NAMESPACE, Buffer.from(parts.join('\n'))]), 'hex')

const tailOf = (digest: string): string => {
  const variant = '89ab'.charAt(Number.parseInt(digest.charAt(16), 16) & 3)
  return `${digest.slice(13, 16)}-${variant}${digest.slice(17, 20)}-${digest.slice(20, 32)}`
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

export const isId = (text: string): boolean => UUID.test(text)
