import type { CliCommand } from './command.ts'

const ENVIRONMENT = `Environment:
  SVC_URL             the service (default: http://HOST:PORT, as npm start listens)
  SVC_OPERATOR_TOKEN  the operator token (default: from secrets.json in SVC_DATA_DIR, or derived from SVC_MASTER_KEY)

Exit codes: 0 done, 1 failed, 2 wrong usage
`

const linesOf = (rows: readonly (readonly [string, string])[]): string => {
  const width = Math.max(...rows.map(([left]) => left.length))
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}\n`).join('')
}

const listOf = (commands: readonly CliCommand[]): string =>
  linesOf(commands.map(({ group, name, summary }) => [`svc ${group} ${name}`, summary] as const))

export const helpOfAll = (commands: readonly CliCommand[]): string =>
  `svc operates a running service.\n\nCommands:\n${listOf(commands)}\n` +
  `Run svc <group> <command> --help for the options of a command.\n\n${ENVIRONMENT}`

export const helpOfGroup = (commands: readonly CliCommand[]): string =>
  `Commands:\n${listOf(commands)}\n${ENVIRONMENT}`

export const helpOf = ({ group, name, description, options, examples }: CliCommand): string => {
  const rows = Object.entries(options).map(
    ([option, { value, description: text }]) =>
      [value === undefined ? `--${option}` : `--${option} ${value}`, text] as const,
  )
  return (
    `svc ${group} ${name} [options]\n\n${description}\n\n` +
    `Options:\n${linesOf([...rows, ['--json', 'print the result as JSON'], ['--help', 'print this text']])}\n` +
    `Examples:\n${examples.map((example) => `  ${example}\n`).join('')}\n${ENVIRONMENT}`
  )
}
