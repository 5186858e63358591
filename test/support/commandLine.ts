import { parseArgs, type ParseArgsConfig } from 'node:util'
import { messageOf } from '../../src/errors.ts'

type Options = NonNullable<ParseArgsConfig['options']>

/**
 * Reads the arguments of `npm run NAME`. `--help` prints the help and ends the process with 0; wrong usage ends it with 2 and
 * a line on standard error.
 */
export const readArguments = <const Given extends Options>(name: string, help: string, options: Given) => {
  const refuse = (problem: string): never => {
    process.stderr.write(`npm run ${name}: ${problem}; see npm run ${name} -- --help\n`)
    process.exit(2)
  }
  const parsed = () => {
    try {
      return parseArgs({
        allowPositionals: true,
        options: { ...options, help: { type: 'boolean', short: 'h', default: false } },
      })
    } catch (error) {
      return refuse(messageOf(error).split('. ')[0] ?? '') // then comes advice about positional arguments
    }
  }
  const { values, positionals } = parsed()
  if ('help' in values && values.help === true) {
    process.stdout.write(help)
    process.exit(0)
  }
  /** Checks the value of an option. */
  const wholeNumber = (option: string, text: string, least = 1): number =>
    /^\d+$/.test(text) && Number(text) >= least && Number.isSafeInteger(Number(text))
      ? Number(text)
      : refuse(`expected --${option} to be a whole number from ${least}, got ${JSON.stringify(text)}`)
  /** Checks names among the arguments. */
  const oneOf = (what: string, name: string, names: readonly string[]): string =>
    names.includes(name)
      ? name
      : refuse(`expected ${what} to be one of ${names.join(', ')}, got ${JSON.stringify(name)}`)
  return { values, positionals, refuse, wholeNumber, oneOf }
}
