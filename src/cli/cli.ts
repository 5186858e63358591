import { readFileSync } from 'node:fs'
import { AppError, isAppError } from '../errors.ts'
import { onOneLine } from '../logger.ts'
import { backupCommands } from './backup.ts'
import { auditCommands } from './audit.ts'
import { buildCommand } from './build.ts'
import { connectClient, serviceErrorOf } from './author.ts'
import { type Connection, connectionHere, urlHere } from './connection.ts'
import type { CliCommand, Invocation, Printed } from './command.ts'
import { deployCommand } from './deploy.ts'
import { devCommand } from './dev.ts'
import { contextCommands } from './contextVariables.ts'
import { doctorCommand } from './doctor.ts'
import { envCommands } from './envs.ts'
import { eventCommands } from './events.ts'
import { fileCommands } from './files.ts'
import { functionsCommand } from './functions.ts'
import { openProgress, openWaiting, type Progress } from './progress.ts'
import { keyCommands } from './keys.ts'
import { orgCommands } from './orgs.ts'
import { rollbackCommand } from './rollback.ts'
import { runProgram, type Values } from './program.ts'
import { initCommand } from './init.ts'
import { loginCommand } from './login.ts'
import { mcpCommand } from './mcp.ts'
import { openCommand } from './open.ts'
import { connectOperator } from './operator.ts'
import { projectionCommands } from './projections.ts'
import { projectCommands } from './projects.ts'
import { runCommands } from './runs.ts'
import { scheduleCommands } from './schedules.ts'
import { secretsCommands } from './secrets.ts'
import { serveCommand } from './serve.ts'
import { sessionCommands } from './sessions.ts'
import { statusCommand } from './status.ts'
import { tableOf } from './table.ts'
import { transferCommands } from './transfer.ts'
import { typesCommand } from './types.ts'
import { webhooksCommand } from './webhooks.ts'
import type { Terminal } from './terminal.ts'
import { WrongUsage } from './wrongUsage.ts'

const allCommands: readonly CliCommand[] = [
  ...eventCommands,
  ...runCommands,
  functionsCommand,
  ...scheduleCommands,
  webhooksCommand,
  ...contextCommands,
  ...fileCommands,
  ...sessionCommands,
  typesCommand,
  initCommand,
  loginCommand,
  openCommand,
  mcpCommand,
  devCommand,
  serveCommand,
  statusCommand,
  doctorCommand,
  buildCommand,
  deployCommand,
  rollbackCommand,
  ...projectCommands,
  ...orgCommands,
  ...envCommands,
  ...keyCommands,
  ...auditCommands,
  ...projectionCommands,
  ...secretsCommands,
  ...backupCommands,
  ...transferCommands,
]

/** Exit codes. */
const DONE = 0
const FAILED = 1
const WRONG_USAGE = 2

interface Given {
  readonly terminal: Terminal
  readonly signal: AbortSignal
  readonly commands?: readonly CliCommand[]
}

/** Runs a command of `svc`. Resolves with the exit code: 0 done, 1 failed, 2 wrong usage. */
export const runCli = async (
  args: readonly string[],
  { terminal, signal, commands = allCommands }: Given,
): Promise<number> => {
  let help = ''
  let code = DONE
  try {
    await runProgram(commands, args, {
      version: versionOf(),
      write: (text) => (help += text),
      run: async (command, values) => {
        if (await runCommand(command, values, terminal, signal)) code = FAILED
      },
    })
    if (help !== '') await terminal.out(help)
    return code
  } catch (error) {
    if (signal.aborted) terminal.err('svc: interrupted\n')
    else if (isAppError(error)) terminal.err(errorText(error))
    else if (isOfAFile(error)) terminal.err(`svc: ${onOneLine(error.message)}\n`)
    else throw error
    return error instanceof WrongUsage ? WRONG_USAGE : FAILED
  }
}

/** The message of an error, and the page of the dashboard about its resource. */
const errorText = ({ message, data: { page } }: AppError): string =>
  `svc: ${message}\n${typeof page === 'string' ? `See ${onOneLine(page)}\n` : ''}`

/** Whether the system refused a file or a folder. The message names both, so a stack would add nothing for its user. */
const isOfAFile = (error: unknown): error is NodeJS.ErrnoException =>
  error instanceof Error && 'syscall' in error && 'path' in error

/** Resolves with whether the result is a failed one. */
const runCommand = async (
  command: CliCommand,
  values: Values,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<boolean> => {
  if (command.confirms === true && !values.yes && terminal.ask === null)
    throw new WrongUsage('the confirmation needs a terminal: repeat the command with --yes')
  const bars: Pick<Progress, 'end'>[] = []
  let connection: Connection | undefined
  const connected = () => (connection ??= connectionHere(values.profile))
  const print = ({ json, text }: Printed): Promise<void> =>
    terminal.out(values.json ? `${jsonLine(json)}\n` : text)
  const invocation: Invocation = {
    ...values,
    signal,
    print,
    operator: () => connectOperator(signal),
    client: () => connectClient(connected(), signal),
    environment: () => connectClient(connected(), signal, 0),
    url: () => urlHere(values.profile),
    folderProject: () => connected().project,
    input: () => terminal.input(signal),
    secret: (question) => secretOf(question, terminal, signal),
    paint: terminal.paint,
    table: (rows, columns) => tableOf(rows, columns, terminal.columns, terminal.paint),
    waiting: (label) => void bars.push(openWaiting(terminal, label)),
    progress: (unit) => {
      const bar = openProgress(terminal, unit)
      bars.push(bar)
      return bar
    },
    browse: (url) => void (values.json || terminal.browse?.(url)),
    confirm: (question) => confirm(question, values, terminal, signal),
  }
  try {
    const result = await command.run(invocation)
    for (const bar of bars.splice(0)) bar.end()
    if (result && 'json' in result) await print(result)
    return result?.failed === true
  } catch (error) {
    throw serviceErrorOf(error, connection) ?? error
  } finally {
    for (const bar of bars) bar.end()
  }
}

const confirm = async (
  question: string,
  { yes }: Values,
  { ask }: Terminal,
  signal: AbortSignal,
): Promise<void> => {
  if (yes) return
  if (ask === null) throw new AppError('bad_request', `${question} Repeat the command with --yes`)
  const answer = await ask(`${onOneLine(question)} [y/N] `, signal)
  if (/^y(es)?$/i.test(answer.trim())) return
  throw new AppError('bad_request', 'not confirmed: nothing was changed')
}

const secretOf = async (
  question: string,
  { askHidden, input }: Terminal,
  signal: AbortSignal,
): Promise<string> => {
  const text = askHidden ? await askHidden(question, signal) : (await input(signal)).replace(/\r?\n$/, '')
  if (text !== '') return text
  throw new WrongUsage('expected a value in the standard input, got nothing')
}

/** JSON on one line, in which a terminal finds nothing to obey: the escapes are those of JSON. */
const jsonLine = (value: unknown): string => onOneLine(JSON.stringify(value))

const versionOf = (): string => {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}
