import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { openBlobs } from './adapters/embedded/blobs.ts'
import { openEventStore } from './adapters/embedded/eventStore/index.ts'
import { openReadModels } from './adapters/embedded/readModels/index.ts'
import { createApp } from './api/app.ts'
import { Authenticator } from './api/http/authenticate.ts'
import { listen } from './api/server.ts'
import { EnvFeeds } from './api/streams/envFeed.ts'
import { ensureFirstTenant, openSecrets } from './bootstrap.ts'
import { clock } from './clock.ts'
import { openCommands } from './commands/index.ts'
import type { Config } from './config.ts'
import { lockDataDir } from './dataDir.ts'
import { keepGoing } from './keepGoing.ts'
import type { Logger } from './log.ts'
import { Payloads } from './payloads.ts'
import { openViews } from './projections/views.ts'
import { openRuntime } from './runtime/index.ts'
import { Worker } from './runtime/worker.ts'
import { Alarms } from './sagas/alarms.ts'
import { loseWorkers } from './sagas/recovery.ts'
import { retries } from './sagas/retries.ts'
import { schedules } from './sagas/schedules.ts'
import { Keyring } from './secrets.ts'

export interface Service {
  readonly url: string
  /** The key of the first environment, and whether it was made by this start. */
  readonly apiKey: string
  readonly firstStart: boolean
  readonly operatorToken: string
  /** Stops accepting, drains, closes. Resolves when nothing is left open. */
  stop(): Promise<void>
}

const API_DRAIN_MS = 5000
const RUN_DRAIN_MS = 20_000
const MAX_RUNS = 2000

/** The composition root: the one place that knows which adapters there are. Opens in order, closes last in first out. */
export const start = async (
  config: Config,
  log: Logger,
  { codeDir = null, ...about }: { version: string; git_sha: string; codeDir?: string | null },
): Promise<Service> => {
  const closers: (() => Promise<void> | void)[] = []
  const close = async (): Promise<void> => {
    for (const closer of closers.splice(0).reverse()) await closer()
  }
  try {
    closers.push(lockDataDir(config.dataDir))
    const secrets = openSecrets(config)
    const keyring = new Keyring(secrets.masterKey)
    const store = openEventStore({ dir: config.dataDir })
    closers.push(() => store.close())
    const readModels = openReadModels({
      dir: config.dataDir,
      onDiscarded: (discarded) =>
        log.warn('The read models were unusable and are made anew from the log', { ...discarded }),
    })
    closers.push(() => readModels.close())
    const blobs = await openBlobs({ dir: join(config.dataDir, 'blobs') })
    closers.push(() => blobs.close())

    const background = new AbortController()
    closers.push(() => background.abort())
    const { signal } = background
    const payloads = new Payloads(blobs)
    const commands = openCommands(store)
    await ensureFirstTenant(commands, { apiKey: secrets.apiKey, keyring })
    const views = await openViews({ store, readModels, payloads, log }, signal)

    const runtime = openRuntime({
      blobs,
      cacheDir: join(config.dataDir, 'cache'),
      ...(codeDir !== null && { codeDir }),
    })
    const worker = new Worker(
      { store, commands, views, payloads, keyring, runtime, log },
      { maxRuns: MAX_RUNS, runTimeoutMs: config.runTimeoutMs },
    )
    const alarms = new Alarms()
    closers.push(() => alarms.close())
    await views.reach(await store.head())
    // The lock on the data directory proves that every earlier worker is dead.
    await loseWorkers(
      { commands, runs: views.runs, workers: views.workers, log },
      (id) => id !== worker.worker_id,
    )
    const head = await store.head()
    await views.reach(head)
    await worker.start()
    closers.push(() => worker.stop({ drainMs: RUN_DRAIN_MS }))
    void keepGoing(
      'The retry saga',
      (until) => retries({ store, commands, runs: views.runs, alarms }, head, until),
      { signal, log },
    )
    void keepGoing(
      'The schedule saga',
      (until) => schedules({ commands, directory: views.directory, alarms, log }, until),
      { signal, log },
    )

    const authenticator = new Authenticator({ apiKeys: views.apiKeys, keyring })
    void keepGoing('The credential watch', (until) => authenticator.watch(store, until), { signal, log })
    const stopping = new AbortController()
    const scratchDir = join(config.dataDir, 'uploads')
    rmSync(scratchDir, { recursive: true, force: true }) // what a crash left of uploads
    mkdirSync(scratchDir, { recursive: true })
    let url = config.publicUrl ?? ''
    const app = createApp({
      store,
      commands,
      views,
      blobs,
      payloads,
      runtime,
      claimer: worker,
      keyring,
      authenticator,
      feeds: new EnvFeeds(store, { log, signal }),
      log,
      publicUrl: () => url,
      sseTimeoutMs: config.sseTimeoutMs,
      webhookTimeoutMs: config.webhookTimeoutMs,
      stopping: stopping.signal,
      notReady: () => (stopping.signal.aborted ? 'The server is stopping' : null),
      scratchDir,
      about: { ...about, start_time: clock.iso() },
    })
    const server = await listen(app, config)
    url ||= `http://${config.host}:${server.port}`
    closers.push(async () => {
      stopping.abort()
      await server.close(API_DRAIN_MS)
    })
    return {
      url,
      apiKey: secrets.apiKey,
      firstStart: secrets.made,
      operatorToken: secrets.operatorToken,
      stop: close,
    }
  } catch (error) {
    await close()
    throw error
  }
}
