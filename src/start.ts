import { join } from 'node:path'
import { createFront } from './api/app.ts'
import { listen } from './api/server.ts'
import { openSecrets } from './process/secretsFile.ts'
import { ensureFirstTenant } from './commands/ensureFirstTenant.ts'
import { clock } from './clock.ts'
import { Membership } from './cluster/membership.ts'
import { openAggregates } from './domain/aggregates.ts'
import { type Config, isSolo } from './process/config.ts'
import { lockDataDir } from './process/dataDir.ts'
import { DataKeys } from './secrets/dataKeys.ts'
import { openEngines } from './process/engines.ts'
import { AppError } from './errors.ts'
import { newId } from './ids.ts'
import { keepGoing } from './loops/keepGoing.ts'
import type { Logger } from './logger.ts'
import { Payloads } from './content/payloads.ts'
import { openViews } from './projections/views.ts'
import { Quotas } from './plans/quotas.ts'
import type { Node } from './process/roles/node.ts'
import { startProjecting } from './process/roles/projector.ts'
import { Keyring } from './secrets/keyring.ts'

export interface Service {
  /** Where clients reach it. */
  readonly url: string
  /** Where this process listens. */
  readonly listens: string
  /** The key of the first environment. */
  readonly apiKey: string
  readonly operatorToken: string
  /** Where the secrets were made just now, to be shown this once: a file, or the master key; null when they were there. */
  readonly made: string | null
  /** Stops accepting, drains, closes. Resolves when nothing is left open. */
  stop(): Promise<void>
}

interface About {
  readonly version: string
  readonly git_sha: string
  readonly codeDir?: string | null
  /** Gives up a start that waits for an engine. */
  readonly signal?: AbortSignal
}

const API_DRAIN_MS = 5000
/** A node that waits this long for its read models says what may be missing. */
const PATIENCE_MS = 5000

/**
 * The composition root: opens in order, closes last in first out. The server listens from the beginning: `/readyz`
 * is 503, and says why, until everything answers.
 */
export const start = async (
  config: Config,
  logger: Logger,
  { codeDir = null, signal: givenUp = new AbortController().signal, ...about }: About,
): Promise<Service> => {
  const closers: (() => Promise<void> | void)[] = []
  const stopping = new AbortController()
  const stop = async (): Promise<void> => {
    stopping.abort()
    for (const closer of closers.splice(0).reverse()) await closer()
  }
  try {
    closers.push(lockDataDir(config.dataDir))
    const secrets = openSecrets(config)
    let waiting: string | null = 'The server is starting'
    /** Why a part of this node is stopped until it is started again. */
    const defects: string[] = []
    const onGivenUp = (reason: string): void => void defects.push(reason)
    const notReady = () => (stopping.signal.aborted ? 'The server is stopping' : (defects[0] ?? waiting))
    const status = { ...about, start_time: clock.iso() }
    const server = await listen(
      createFront({ logger, about: status, notReady }, () => refusal(notReady())),
      config,
    )
    closers.push(() => server.close(API_DRAIN_MS))

    const engines = await openEngines(config, {
      logger,
      signal: AbortSignal.any([stopping.signal, givenUp]),
      opened: (close) => closers.push(close),
      waiting: (reason) => (waiting = reason ?? 'The server is starting'),
    })
    const { store, readModels, blobs } = engines
    const background = new AbortController()
    const { signal } = background

    const membership = isSolo(config) ? null : new Membership(readModels)
    const node_id = newId()
    if (membership) {
      membership.join(node_id)
      void keepGoing('Membership', (until) => membership.run(until), { signal, logger, onGivenUp })
      closers.push(() => membership.leave().catch(() => {})) // else the others find out by themselves
    }
    closers.push(() => background.abort())

    const payloads = new Payloads(blobs)
    const aggregates = openAggregates(store, onGivenUp)
    const dataKeys = new DataKeys({ keys: aggregates.dataKeys, blobs, masterKey: secrets.masterKey })
    void keepGoing('The watch over data keys', (until) => dataKeys.watch(store, until), {
      signal,
      logger,
      onGivenUp,
    })
    const keyring = new Keyring(secrets.masterKey, dataKeys)
    const { roles } = config
    const first =
      roles.has('api') && (await ensureFirstTenant({ aggregates, keyring }, { token: secrets.apiKey }))
    waiting = 'The read models are being built'
    const progress = startProjecting(
      { ...engines, node_id, membership, logger, onGivenUp },
      roles.has('projector'),
      signal,
    )
    const hint = setTimeout(
      () => logger.warn(`${waiting}; if it does not end, is a node with the role projector running?`),
      PATIENCE_MS,
    )
    closers.push(() => clearTimeout(hint))
    const views = await openViews({ store, readModels, payloads, progress, logger, onGivenUp }, signal)
    clearTimeout(hint)
    const node: Node = {
      ...engines,
      config,
      node_id,
      logger,
      onGivenUp,
      aggregates,
      payloads,
      keyring,
      dataKeys,
      views,
      quotas: new Quotas(views),
      membership,
      signal,
      onClose: (close) => closers.push(close),
    }

    const runs = roles.has('worker')
    const runtime =
      roles.has('api') || runs
        ? (await import('./builds/openRuntime.ts')).openRuntime({
            blobs,
            cacheDir: join(config.dataDir, 'cache'),
            ...(codeDir !== null && { codeDir }),
          })
        : null
    if (runtime) closers.push(() => runtime.close())
    const worker =
      runs && runtime ? await (await import('./process/roles/worker.ts')).startWorker(node, runtime) : null
    if (roles.has('saga')) {
      await (await import('./process/roles/saga.ts')).startSagas(node)
    }
    const listens = `http://${config.host}:${server.port}`
    const url = config.publicUrl ?? listens
    if (roles.has('api') && runtime) {
      const { createApi } = await import('./process/roles/api.ts')
      server.serve(
        createApi(node, {
          runtime,
          claimer: worker,
          operatorToken: secrets.operatorToken,
          publicUrl: () => url,
          stopping: stopping.signal,
          notReady,
          about: status,
        }),
      )
    }
    waiting = null
    // Requests end before what they need does.
    closers.push(() => server.close(API_DRAIN_MS))
    return {
      url,
      listens,
      apiKey: secrets.apiKey,
      operatorToken: secrets.operatorToken,
      made: secrets.made ?? (first && config.apiKey === null ? 'SVC_MASTER_KEY' : null),
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

/** To anything but a question how the node is. */
const refusal = (reason: string | null): AppError =>
  reason === null
    ? new AppError('not_found', 'This node has no API: SVC_ROLES leaves it out')
    : new AppError('unavailable', reason)
