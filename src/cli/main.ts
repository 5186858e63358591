import '../process/codeCache.js'

// Loaded when the cache is there: without it, a command takes twice as long to start.
const { runCli } = await import('./cli.ts')
const { keepFilesPrivate } = await import('./fileModes.ts')
const { openTerminal } = await import('./terminal.ts')
const { onStopSignals } = await import('../process/stopSignals.ts')

process.removeAllListeners('warning') // those of Node are for the developers of svc

keepFilesPrivate()

const interrupted = new AbortController()
onStopSignals({
  signals: ['SIGINT', 'SIGTERM'], // a closed terminal ends a command at once; svc dev listens itself
  first: () => interrupted.abort(),
  again: (signal) => {
    process.removeAllListeners(signal)
    process.kill(process.pid, signal) // so that the shell sees which signal ended it
  },
})

const { signal } = interrupted
process.exitCode = await runCli(process.argv.slice(2), { terminal: openTerminal(process, signal), signal })
