import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { isAppError, messageOf } from '../errors.ts'
import { type CliCommand, type Options, type Output, parseOptionsOf, WrongUsage } from './command.ts'
import { helpOf, helpOfGroup, helpOfAll } from './help.ts'
import { secretsCommands } from './secrets.ts'

const commands: readonly CliCommand[] = [...secretsCommands]

/** Exit codes. */
const DONE = 0
const FAILED = 1
const WRONG_USAGE = 2

/** Runs `svc <group> <command>`. Resolves with the exit code: 0 done, 1 failed, 2 wrong usage. */
export const runCli = async (args: readonly string[], output: Output): Promise<number> => {
  try {
    const [group, name] = args
    if (group === '--version') return print(output, `${versionOf()}\n`)
    if (group === undefined || isHelp(group)) return print(output, helpOfAll(commands))
    const inGroup = commands.filter((command) => command.group === group)
    if (inGroup.length === 0) throw new WrongUsage(`unknown group ${group}; run svc --help`)
    if (name === undefined || isHelp(name)) return print(output, helpOfGroup(inGroup))
    const command = inGroup.find((each) => each.name === name)
    if (!command) throw new WrongUsage(`unknown command ${group} ${name}; run svc ${group} --help`)
    const options = optionsOf(command, args.slice(2))
    if (options['help'] === true) return print(output, helpOf(command))
    const { json, text } = await command.run(options, output)
    return print(output, options['json'] === true ? `${JSON.stringify(json)}\n` : text)
  } catch (error) {
    if (!isAppError(error)) throw error
    output.err(`svc: ${error.message}\n`)
    return error instanceof WrongUsage ? WRONG_USAGE : FAILED
  }
}

const print = ({ out }: Output, text: string): number => {
  out(text)
  return DONE
}

const isHelp = (argument: string): boolean => ['help', '--help', '-h'].includes(argument)

const optionsOf = (command: CliCommand, args: readonly string[]): Options => {
  try {
    const { values } = parseArgs({ args: [...args], options: parseOptionsOf(command), strict: true })
    return values as Options // no option takes several values
  } catch (error) {
    throw new WrongUsage(`${messageOf(error)}; run svc ${command.group} ${command.name} --help`)
  }
}

const versionOf = (): string => {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}
