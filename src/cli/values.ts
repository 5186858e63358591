import { isUtf8 } from 'node:buffer'
import { readFileSync } from 'node:fs'
import { unreadable } from '../errors.ts'
import { isId } from '../ids.ts'
import { onOneLine } from '../logger.ts'
import { withoutBom } from '../text/withoutBom.ts'
import { WrongUsage } from './wrongUsage.ts'

/** A value that is one of these words. */
export const oneOf =
  <const Word extends string>(...words: readonly Word[]) =>
  (text: string): Word => {
    const word = words.find((each) => each === text)
    if (word === undefined) throw new WrongUsage(`expected ${words.join(', ')}; got ${text}`)
    return word
  }

/** The id of a credential. The text is not repeated, because it may be a token by mistake. */
export const credentialId = (text: string): string => {
  if (isId(text)) return text
  throw new WrongUsage('expected the id of the key (a UUID), not its name or its token')
}

const UNITS = { s: 1, m: 60, h: 3600, d: 86_400 } as const

/** A time such as `90s`, `15m`, `12h` or `7d`, in seconds. */
export const seconds = (text: string): number => {
  const [, amount, unit] = /^(\d{1,9})([smhd])$/.exec(text) ?? []
  if (amount === undefined) throw new WrongUsage(`expected a time such as 90s, 15m, 12h or 7d; got ${text}`)
  return Number(amount) * UNITS[unit as keyof typeof UNITS]
}

/** JSON, or `@FILE` with a file that contains it. */
export const json = (text: string): unknown => {
  const isFile = text.startsWith('@')
  const content = isFile ? textIn(text.slice(1)) : text
  try {
    return JSON.parse(content) as unknown
  } catch {
    if (isFile) throw new WrongUsage(`expected a file that contains JSON, got ${shown(text.slice(1))}`)
    throw new WrongUsage(
      `expected JSON, or @FILE with a file that contains JSON; got ${shown(text)} (a text is JSON in quotes: '"text"')`,
    )
  }
}

/** The text of a file that an option or argument names. */
export const textIn = (file: string): string => utf8(bytesIn(file), onOneLine(file))

const bytesIn = (file: string): Buffer => {
  try {
    return readFileSync(file)
  } catch (error) {
    throw new WrongUsage(unreadable(onOneLine(file), error))
  }
}

/** Refuses other encodings, because each of their letters could become U+FFFD. */
export const utf8 = (bytes: Buffer, from: string): string => {
  if (isUtf8(bytes)) return withoutBom(bytes.toString('utf8'))
  throw new WrongUsage(`${from}: expected text in UTF-8`)
}

/** A given text as a part of an error. */
const shown = (text: string): string => onOneLine(text.length > 60 ? `${text.slice(0, 60)}…` : text)

/** Stands for the standard input, which is read when the command runs. */
export const INPUT = Symbol('the standard input')

/** As `json`, or `-` for the standard input. */
export const jsonOrInput = (text: string): unknown => (text === '-' ? INPUT : json(text))

/** The name of a file to write. `-` is usually the standard output, to which none of them is written. */
export const newFile = (text: string): string => {
  if (text !== '-' && text !== '') return text
  throw new WrongUsage(`expected the name of a file, got ${text === '' ? 'nothing' : text}`)
}

export const parsedJson = (text: string): unknown => {
  try {
    return JSON.parse(text) as unknown
  } catch {
    throw new WrongUsage('expected JSON in the standard input')
  }
}

/** The full id of something, such as `a run`. */
export const idOf =
  (what: string) =>
  (text: string): string => {
    if (isId(text)) return text
    throw new WrongUsage(`expected the full id of ${what} (a UUID), got ${shown(text)}`)
  }

const wholeNumber = (text: string): number => {
  if (/^\d{1,6}$/.test(text) && Number(text) > 0) return Number(text)
  throw new WrongUsage(`expected a whole number from 1 to 999999, got ${shown(text)}`)
}

/** The number of items of a list that a command prints. */
export const limit = {
  value: 'N',
  description: 'print at most this many (default: 20)',
  parse: wholeNumber,
} as const

export const DEFAULT_LIMIT = 20

/** A request with an idempotency key has one effect, however often it is repeated. `effect`: what a repetition does. */
export const idempotencyKey = (effect: string) => ({
  value: 'KEY',
  description: `a repetition with the same key ${effect}`,
})
