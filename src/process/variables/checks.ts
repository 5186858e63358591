/** Returns the parsed value of a variable, or the fallback if it is empty; notes a value that is not valid. */
export type Check = <T>(
  name: string,
  fallback: T,
  parse: (text: string) => T | undefined,
  expected: string,
) => T

/** Checks the variables of an environment. `problems` gets a text for each value that is not valid, `known` each name. */
export const checksOf = (env: Readonly<Record<string, string | undefined>>) => {
  const problems: string[] = []
  const known: string[] = []
  const check: Check = (name, fallback, parse, expected) => {
    known.push(name)
    const text = env[name]
    if (text === undefined || text === '') return fallback
    const value = parse(text)
    if (value === undefined) problems.push(`${name}: expected ${expected}`)
    return value ?? fallback
  }
  const integer = (name: string, fallback: number, min: number, max: number): number =>
    check(
      name,
      fallback,
      (text) => (/^\d+$/.test(text) && Number(text) >= min && Number(text) <= max ? Number(text) : undefined),
      `a whole number from ${min} to ${max}`,
    )
  const flag = (name: string): boolean =>
    check(name, false, (text) => (/^[01]$/.test(text) ? text === '1' : undefined), '0 or 1')
  return { problems, known, check, integer, flag }
}
