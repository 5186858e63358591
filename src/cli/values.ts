import { readFileSync } from 'node:fs'
import { isId } from '../ids.ts'
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
  const content = text.startsWith('@') ? readFileSync(text.slice(1), 'utf8') : text
  try {
    return JSON.parse(content) as unknown
  } catch {
    throw new WrongUsage('expected JSON, or @FILE with a file that contains JSON')
  }
}
