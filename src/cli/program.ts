import {
  Argument as CommanderArgument,
  Command,
  CommanderError,
  Help,
  Option as CommanderOption,
} from 'commander'
import { messageOf } from '../errors.ts'
import type { Argument, CliCommand, Option } from './command.ts'
import { ENVIRONMENT, examplesOf, SUMMARY } from './help.ts'
import { WrongUsage } from './wrongUsage.ts'

/** The values of an invocation, by name. */
export interface Values {
  readonly args: Readonly<Record<string, unknown>>
  readonly options: Readonly<Record<string, unknown>>
  readonly json: boolean
  readonly yes: boolean
  readonly profile: string | undefined
}

/** The short names that many programs have for these commands. */
const ALIASES: Readonly<Record<string, string>> = { list: 'ls', remove: 'rm' }

interface Given {
  readonly version: string
  readonly write: (text: string) => void
  readonly run: (command: CliCommand, values: Values) => Promise<void>
}

const JSON_OPTION: Option = { description: 'print the result as JSON' }
const YES_OPTION: Option = { description: 'do not ask for confirmation' }
const PROFILE_OPTION: Option = { value: 'NAME', description: 'the environment of this profile of svc login' }

/**
 * Reads the command line and runs its command. Prints the help where it is requested or a command is missing. Rejects with
 * `WrongUsage`.
 */
export const runProgram = async (
  commands: readonly CliCommand[],
  args: readonly string[],
  given: Given,
): Promise<void> => {
  const program = programOf(commands, given)
  const asked = args[0] === 'help' ? args.slice(1) : args.filter((arg) => arg !== '--help' && arg !== '-h')
  const found = commandAt(program, asked)
  const isUnknown = found.command.commands.length > 0 && found.rest[0]?.startsWith('-') === false
  if (asked.length < args.length && !isUnknown)
    return (defaults.get(found.command) ?? found.command).outputHelp()
  try {
    await program.parseAsync(isUnknown ? asked : args, { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    if (error.code === 'commander.help' || error.code === 'commander.version') return
    throw new WrongUsage(`${messageIn(error, found)}; run ${nameOf(found.command)} --help`)
  }
}

const messageIn = (error: CommanderError, { command, rest }: Found): string => {
  const message = error.message.replace(/^error: |\.$/g, '').replace(/\s*\n\s*/g, ' ')
  if (error.code !== 'commander.excessArguments') return message
  return isDefault(command) ? `unknown command '${rest[0]}'` : `${message}: ${command.args.join(', ')}`
}

interface Found {
  readonly command: Command
  readonly rest: readonly string[]
}

/** The command that the first arguments name, and the arguments that remain. */
const commandAt = (within: Command, args: readonly string[]): Found => {
  const [first] = args
  const next = within.commands.find((each) => first !== undefined && namesOf(each).includes(first))
  if (next) return commandAt(next, args.slice(1))
  const isArgument = first !== undefined && !first.startsWith('-')
  return { command: (isArgument && defaults.get(within)) || within, rest: args }
}

const namesOf = (command: Command): readonly string[] => [command.name(), ...command.aliases()]

/** The commands that run when a group is named without a command. */
const defaults = new WeakMap<Command, Command>()

const isDefault = (command: Command): boolean =>
  command.parent !== null && defaults.get(command.parent) === command

const nameOf = (command: Command): string => {
  const { parent } = command
  if (!parent) return command.name()
  return isDefault(command) ? nameOf(parent) : `${nameOf(parent)} ${command.name()}`
}

const programOf = (commands: readonly CliCommand[], { version, write, run }: Given): Command => {
  const program = new Command('svc')
    .description(SUMMARY)
    .version(version, '--version', 'print the version')
    .helpCommand(false)
    .exitOverride()
    .configureOutput({ writeOut: write, writeErr: write, outputError: () => {} })
    .configureHelp({ formatHelp })
    .helpOption('-h, --help', 'print this text')
    .addHelpText('afterAll', ENVIRONMENT)
  const groups = new Map<string, Command>()
  for (const declared of commands) {
    const { group } = declared
    const parent = group === undefined ? program : (groups.get(group) ?? program.command(group))
    if (group !== undefined) groups.set(group, parent)
    addCommand(parent, declared, run)
  }
  for (const [group, parent] of groups) parent.description(`The commands of svc ${group}.`).helpCommand(false)
  return program
}

/** Lists every command with its group, so that one help shows all. */
const formatHelp: Help['formatHelp'] = (command, helper) => {
  helper.commandUsage = (each) => `${nameOf(each)} ${each.usage()}`
  helper.visibleCommands = (each) =>
    isDefault(each) && each.parent ? leavesOf(each.parent).filter((leaf) => leaf !== each) : leavesOf(each)
  helper.subcommandTerm = nameOf
  return Help.prototype.formatHelp.call(helper, command, helper)
}

const leavesOf = (command: Command): Command[] =>
  command.commands.flatMap((each) => (each.commands.length > 0 ? leavesOf(each) : [each]))

const addCommand = (parent: Command, declared: CliCommand, run: Given['run']): void => {
  const {
    name,
    isDefault: runsByGroup = false,
    summary,
    description,
    examples,
    confirms,
    ofEnvironment,
  } = declared
  const listed = Object.entries(declared.arguments ?? {})
  const specs: Readonly<Record<string, Option>> = {
    ...declared.options,
    ...(confirms && { yes: YES_OPTION }),
    ...(ofEnvironment && { profile: PROFILE_OPTION }),
    json: JSON_OPTION,
  }
  const options = Object.entries(specs).map(([option, spec]) => ({
    name: option,
    spec,
    added: optionOf(option, spec),
  }))
  const command = parent
    .command(name, { isDefault: runsByGroup })
    .summary(summary)
    .description(description)
    .addHelpText('after', examplesOf(examples))
  const alias = ALIASES[name]
  if (alias !== undefined) command.alias(alias)
  if (runsByGroup) defaults.set(parent, command)
  for (const [argument, spec] of listed) command.addArgument(argumentOf(argument, spec))
  for (const { added } of options) command.addOption(added)
  command.action(async () => {
    const given = command.opts<Record<string, unknown>>()
    const values = Object.fromEntries(
      options.map(({ name: option, spec, added }) => {
        const value = given[added.attributeName()]
        if (spec.value === undefined) return [option, value === !added.negate]
        return [option, valueOf(`--${option}`, spec, spec.repeated ? (value ?? []) : value)]
      }),
    )
    const args = Object.fromEntries(
      listed.map(([argument, spec], index) => [
        argument,
        valueOf(argument, spec, command.processedArgs[index]),
      ]),
    )
    await run(declared, {
      args,
      options: values,
      json: values['json'] === true,
      yes: values['yes'] === true,
      profile: ofEnvironment ? (values['profile'] as string | undefined) : undefined,
    })
  })
}

const argumentOf = (name: string, { description, count }: Argument): CommanderArgument => {
  const shown = count === 'any' || count === 'some' ? `${name}...` : name
  const isOptional = count === 'optional' || count === 'any'
  return new CommanderArgument(isOptional ? `[${shown}]` : `<${shown}>`, description)
}

const optionOf = (
  name: string,
  { short, value, description, repeated, required }: Option,
): CommanderOption => {
  const flags = `${short === undefined ? '' : `-${short}, `}--${name}`
  const option = new CommanderOption(
    value === undefined ? flags : `${flags} <${value}>`,
    repeated ? `${description} (can be repeated)` : description,
  )
  // One value per option, so that the arguments after it remain arguments.
  if (repeated) option.argParser((text: string, before?: readonly string[]) => [...(before ?? []), text])
  return required ? option.makeOptionMandatory() : option
}

/** A shell passes an empty text for a variable that is not set: it names nothing. */
const notEmpty = (text: string): string => {
  if (text === '') throw new WrongUsage('expected a value, got nothing')
  return text
}

/** Parses the text of a value, or each text of several. */
const valueOf = (label: string, spec: Argument | Option, value: unknown): unknown => {
  const { parse = spec.mayBeEmpty ? String : notEmpty } = spec
  if (value === undefined) return value
  try {
    return Array.isArray(value) ? value.map((text) => parse(String(text))) : parse(String(value))
  } catch (error) {
    throw new WrongUsage(`${label}: ${messageOf(error)}`)
  }
}
