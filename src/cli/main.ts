import '../process/codeCache.js'

// Loaded when the cache is there: without it, a command takes twice as long to start.
const { runCli } = await import('./cli.ts')
const { keepFilesPrivate } = await import('./fileModes.ts')
const { openTerminal } = await import('./terminal.ts')

process.removeAllListeners('warning') // those of Node are for the developers of svc

keepFilesPrivate()

const interrupted = new AbortController()
// A second signal ends the process at once.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interrupted.abort())

const { signal } = interrupted
process.exitCode = await runCli(process.argv.slice(2), { terminal: openTerminal(process, signal), signal })
