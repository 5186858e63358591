import { statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { ServiceError } from '../client/index.ts'
import { clock } from '../clock.ts'
import { AppError } from '../errors.ts'
import { readClientConfig, readDevAddress } from '../process/clientConfig.ts'
import { MAX_PORT } from '../process/config.ts'
import type { EphemeralDir } from '../process/ephemeralDir.ts'
import { command, type Printed } from './command.ts'
import { type Announcement, openAnnouncement } from './dev/announce.ts'
import { develop } from './dev/develop.ts'
import { type LocalService, startService } from './dev/service.ts'
import { readyText, stalledText } from './dev/texts.ts'
import { readInstance, takeFolder } from './instance.ts'
import { urlIn } from './login.ts'
import { WrongUsage } from './wrongUsage.ts'

const portOf = (text: string): number => {
  if (/^\d+$/.test(text) && Number(text) <= MAX_PORT) return Number(text)
  throw new WrongUsage(`expected a whole number from 0 to ${MAX_PORT}, got ${text}`)
}

export const devCommand = command({
  name: 'dev',
  summary: 'run the functions of a folder, and deploy them again after every save',
  description:
    'Starts a service of its own with its data in FOLDER/.svc, deploys the functions of the folder, and deploys them again ' +
    'after every save. It prints each run as it ends. A save with an error leaves the last good build live. The lines of .env.svc are context ' +
    'variables. On a terminal, r replays the run that failed last, c clears the screen, and q or Ctrl-C stops the service; other commands of svc in the folder find it meanwhile.',
  arguments: { FOLDER: { description: 'the folder of the project (default: this one)', count: 'optional' } },
  options: {
    port: { value: 'PORT', description: 'where the service listens, or the next free port', parse: portOf },
    to: {
      value: 'URL',
      description: 'deploy to this service with the key in SVC_KEY, instead of starting one',
      parse: urlIn,
    },
    ephemeral: { description: 'keep the data in a temporary folder, and remove it at the end' },
  },
  examples: [
    'svc dev',
    'svc dev orders --port 9000',
    'svc dev --to https://svc.example.com',
    'svc dev --ephemeral --json',
  ],
  async run({ args, options, signal: interrupted, print, paint }) {
    const folder = resolve(args.FOLDER ?? '.')
    if (options.to !== undefined && (options.port !== undefined || options.ephemeral))
      throw new WrongUsage('--to: expected neither --port nor --ephemeral, because no service is started')
    const release = takenFolder(folder)
    const left = terminalLeft()
    const stopped = AbortSignal.any([interrupted, left])
    const ephemeral = options.to === undefined ? await temporaryDir(options.ephemeral) : null
    const dataDir = ephemeral?.path ?? join(folder, '.svc')
    let service: LocalService | null = null
    let announcement: Announcement | null = null
    try {
      const since = clock.monotonic()
      const { host, port } = readDevAddress()
      if (options.to === undefined)
        service = await startService(
          dataDir,
          { host, port: options.port ?? port, stalled: stallsIn(dataDir, print) },
          stopped,
        )
      const { url, key } = service ?? remoteService(options.to ?? '')
      const data = options.ephemeral || service === null ? null : dataDir
      announcement = openAnnouncement({
        folder,
        url,
        key,
        pid: process.pid,
        dataDir: service && dataDir,
        variables: [`SVC_URL=${url}`, service ? `SVC_DATA_DIR=${dataDir}` : 'SVC_KEY'],
        print,
      })
      await develop({
        folder,
        url,
        key,
        stopped,
        print,
        paint,
        ready: () => readyText({ url, folder, data, ms: Math.round(clock.monotonic() - since) }),
        data: service && dataDir,
        announce: announcement.announce,
        ended: service ? diedOf(service) : null,
        keyboard: process.stdin.isTTY && process.stdout.isTTY ? process.stdin : null,
      })
    } catch (error) {
      if (stopped.aborted) return // done, as every command that follows something
      throw error instanceof ServiceError
        ? new AppError('unavailable', error.message, { cause: error })
        : error
    } finally {
      await service?.stop()
      announcement?.end()
      ephemeral?.remove()
      release()
    }
  },
})

/** Removes what killed instances have left, and creates a data directory if one is wanted. */
const temporaryDir = async (isWanted: boolean): Promise<EphemeralDir | null> => {
  const { openEphemeralDir, removeDeadDirs } = await import('../process/ephemeralDir.ts')
  removeDeadDirs()
  return isWanted ? openEphemeralDir() : null
}

/** The key is never one that is stored, because those belong to other addresses. */
const remoteService = (url: string): Pick<LocalService, 'url' | 'key'> => {
  const { apiKey } = readClientConfig()
  if (apiKey === null) throw new AppError('unauthorized', '--to: expected an API key in SVC_KEY, got none')
  return { url, key: apiKey }
}

/** Takes the folder, and returns a function that releases it. One that cannot be written is not taken. */
const takenFolder = (folder: string): (() => void) => {
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory())
    throw new AppError('bad_request', `FOLDER: expected a folder, got ${folder}`)
  let release: (() => void) | null
  try {
    release = takeFolder(folder)
  } catch {
    return () => {} // the announcement reports why
  }
  if (release) return release
  const running = readInstance(folder)
  const where = running ? ` at ${running.url} (process ${running.pid})` : ''
  throw new AppError('bad_request', `svc dev is running in ${folder}${where}: stop it first`)
}

/** Prints each new reason for which the service cannot work, and the end of the last one. */
const stallsIn = (dataDir: string, print: (line: Printed) => Promise<void>) => {
  let reported: string | null = null
  return (reason: string | null): void => {
    if (reason === reported) return
    reported = reason
    void print(stalledText(reason, dataDir))
  }
}

/** Aborts when the terminal was closed, or when the process that passes signals on has ended. */
const terminalLeft = (): AbortSignal => {
  const left = new AbortController()
  process.once('SIGHUP', () => left.abort())
  if (process.channel) process.once('disconnect', () => left.abort())
  return left.signal
}

/** Rejects when the service ends by itself. */
const diedOf = async ({ ended, log }: LocalService): Promise<never> => {
  await ended
  throw new AppError('unavailable', `the service has ended; see ${log}`)
}
