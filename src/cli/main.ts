import { runCli } from './cli.ts'
import { openTerminal } from './terminal.ts'

const interrupted = new AbortController()
// A second signal ends the process at once.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interrupted.abort())

const { signal } = interrupted
process.exitCode = await runCli(process.argv.slice(2), { terminal: openTerminal(process, signal), signal })
