import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { makeFolder } from '../../disk/makeFolder.ts'
import { AppError, messageOf } from '../../errors.ts'
import { onOneLine } from '../../logger.ts'
import { devServiceEnv } from '../../process/clientConfig.ts'
import { MAX_PORT } from '../../process/config.ts'
import { serviceArguments } from '../serve.ts'

/** The service that `svc dev` has started. */
export interface LocalService {
  readonly url: string
  readonly key: string
  /** The output of the service. */
  readonly log: string
  /** Resolves when the process has ended. */
  readonly ended: Promise<void>
  /** Stops the service in order. Resolves when its process has ended. */
  stop(): Promise<void>
}

interface Start {
  readonly host: string
  /** 0: any free port. */
  readonly port: number
  /** Receives the reason why the service cannot work at the moment; null when it can again. */
  readonly stalled: (reason: string | null) => void
}

/** What the service sends to the process that has started it. */
type Message = Pick<LocalService, 'url' | 'key'> | { readonly stalled: string | null }

/**
 * Starts the service in a process of its own, at the port or the next free one.
 * C1: the channel between the processes closes when this one ends, however that happens, and the service then stops.
 * C2: the service has its own process group, so that Ctrl-C reaches this process only, which stops it in order.
 * C3: the service writes into a file, so that no closed pipe can end it.
 */
export const startService = async (
  dataDir: string,
  { host, port, stalled }: Start,
  signal: AbortSignal,
): Promise<LocalService> => {
  const log = join(dataDir, 'dev.log')
  try {
    makeFolder(dataDir, 0o700)
    writeFileSync(log, '', { mode: 0o600, flag: 'a' })
  } catch (error) {
    throw new AppError(
      'unavailable',
      `${dataDir} cannot be written: ${messageOf(error)}; --ephemeral keeps the data elsewhere`,
      { cause: error },
    )
  }
  const { lockDataDir } = await import('../../process/dataDir.ts')
  lockDataDir(dataDir)() // throws while another service has the directory, and writes into its log
  truncateSync(log)
  for (let at = port; at <= MAX_PORT; at++) {
    if (at !== 0 && !(await isFree(host, at))) continue
    const service = await started(dataDir, { log, port: at, stalled, signal })
    if (service) return service
    signal.throwIfAborted()
    // Another process may have taken the port in the meantime.
    if (at === 0 || (await isFree(host, at))) throw new AppError('unavailable', reasonIn(log))
  }
  throw new AppError('unavailable', `--port: expected a free port from ${port} to ${MAX_PORT}, found none`)
}

/** Resolves with null if the service ends before it is ready. */
const started = async (
  dataDir: string,
  {
    log,
    port,
    stalled,
    signal,
  }: Pick<Start, 'port' | 'stalled'> & { readonly log: string; readonly signal: AbortSignal },
): Promise<LocalService | null> => {
  const output = openSync(log, 'a', 0o600) // C3
  const child = spawn(process.execPath, serviceArguments(), {
    env: devServiceEnv({ dataDir, port }),
    stdio: ['ignore', output, output, 'ipc'], // C1
    detached: true, // C2
  })
  closeSync(output)
  const ended = once(child, 'exit').then(() => undefined)
  const stop = async (): Promise<void> => {
    if (child.connected) child.disconnect()
    await ended
  }
  const ready = new Promise<Pick<LocalService, 'url' | 'key'>>((resolve) =>
    child.on('message', (message: Message) => {
      if ('stalled' in message) stalled(message.stalled)
      else resolve(message)
    }),
  )
  const interrupted = signal.aborted ? Promise.resolve() : once(signal, 'abort')
  const found = await Promise.race([ready, ended, interrupted.then(stop)])
  return found ? { ...found, log, ended, stop } : null
}

const isFree = async (host: string, port: number): Promise<boolean> => {
  const server = createServer()
  try {
    server.listen(port, host)
    await once(server, 'listening')
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && ['EADDRINUSE', 'EACCES'].includes(String(error.code)))
      return false
    throw error
  } finally {
    server.close()
  }
}

/** The last message of the service. */
const reasonIn = (log: string): string => {
  const text = readFileSync(log, 'utf8')
  const last = text.slice(text.lastIndexOf('\nsvc: ') + 1).replace(/^svc: /, '')
  return onOneLine(last.trim() || `the service ended without a message; see ${log}`)
}
