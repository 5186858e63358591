/** Invalid metadata. The message is for the author of the build. */
export class BadMetadata extends Error {}

export type Fields = Readonly<Record<string, unknown>>

const CONTROL = /\p{Cc}/u
const CONTROL_BUT_LINES = /(?![\n\t])\p{Cc}/u

export const fieldsOf = (value: unknown, expectation: string): Fields => {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value }
  throw new BadMetadata(`${expectation}, got ${shown(value)}`)
}

export const anyTextOf = (value: unknown, what: string): string => {
  if (typeof value === 'string' && CONTROL_BUT_LINES.test(value))
    throw new BadMetadata(expected(what, 'to have no control characters but line breaks and tabs', value))
  if (typeof value === 'string' && value.length <= 1024) return value
  throw new BadMetadata(expected(what, 'to be a string of at most 1024 characters', value))
}

export const textOf = (value: unknown, what: string): string => {
  if (typeof value === 'string' && CONTROL.test(value))
    throw new BadMetadata(expected(what, 'to have no control character', value))
  if (typeof value === 'string' && value !== '' && value.length <= 1024) return value
  throw new BadMetadata(expected(what, 'to be a string of 1 to 1024 characters', value))
}

export const integerOf = (
  value: unknown,
  what: string,
  { least, most, unit = '' }: { least: number; most: number; unit?: string },
): number => {
  if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) return value
  throw new BadMetadata(expected(what, `to be a whole number${unit} from ${least} to ${most}`, value))
}

/** A duration in milliseconds. */
export const durationOf = (value: unknown, what: string, least: number, most: number): number =>
  integerOf(value, what, { least, most, unit: ' of milliseconds' })

export const booleanOf = (value: unknown, what: string): boolean => {
  if (typeof value === 'boolean') return value
  throw new BadMetadata(expected(what, 'to be true or false', value))
}

/** `what` is `file: var: field`; the message has the word Expected before the field. */
export const expected = (what: string, expectation: string, value: unknown): string => {
  const at = what.lastIndexOf(': ') + 2
  return `${what.slice(0, at)}Expected ${what.slice(at)} ${expectation}, got ${shown(value)}`
}

export const shown = (value: unknown): string => (JSON.stringify(value) ?? String(value)).slice(0, 80)
