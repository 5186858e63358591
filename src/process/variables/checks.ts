import { counted } from '../../text/counted.ts'
import { shownValue } from '../../secrets/shownValue.ts'
import { keySizeOf } from './values.ts'

/** Returns the parsed value of a variable, or the fallback if it is empty; notes a value that is not valid. */
export type Check = <T>(
  name: string,
  fallback: T,
  parse: (text: string) => T | undefined,
  expected: string,
) => T

/** A secret that is not valid: its size may show the mistake. */
const sizeOf = (text: string): string => `${counted(text.length, 'character')}, not shown`

/** Checks the variables of an environment. `problems` gets a text for each value that is not valid, `known` each name. */
export const checksOf = (env: Readonly<Record<string, string | undefined>>) => {
  const problems: string[] = []
  const known: string[] = []
  const checkAs =
    (got: (text: string) => string): Check =>
    (name, fallback, parse, expected) => {
      known.push(name)
      const text = env[name]
      if (text === undefined || text === '') return fallback
      const value = parse(text)
      if (value === undefined) problems.push(`${name}: expected ${expected}; got ${got(text)}`)
      return value ?? fallback
    }
  const check = checkAs(shownValue)
  const integer = (name: string, fallback: number, min: number, max: number, example = fallback): number =>
    check(
      name,
      fallback,
      (text) => (/^\d+$/.test(text) && Number(text) >= min && Number(text) <= max ? Number(text) : undefined),
      `a whole number from ${min} to ${max}, such as ${example}`,
    )
  const flag = (name: string): boolean =>
    check(name, false, (text) => (/^[01]$/.test(text) ? text === '1' : undefined), '0 or 1')
  return { problems, known, check, checkSecret: checkAs(sizeOf), checkKey: checkAs(keySizeOf), integer, flag }
}
