import { isIPv6 } from 'node:net'
import { createFront } from './api/app.ts'
import type { Operator } from './api/http/operator.ts'
import { RequestMeter } from './api/http/requestMeter.ts'
import { listen } from './api/server.ts'
import { clock } from './clock.ts'
import { AppError } from './errors.ts'
import type { Logger } from './logger.ts'
import { Collector } from './loops/collector.ts'
import { FairTurns } from './loops/fairTurns.ts'
import { openPatience } from './loops/patience.ts'
import { slices } from './loops/slices.ts'
import { WaitingCalls } from './loops/waitingCalls.ts'
import { demandOpenFiles } from './process/checks/machine.ts'
import { type Config, isSolo } from './process/config.ts'
import { lockDataDir } from './process/dataDir.ts'
import { drain } from './process/drain.ts'
import { openEngines, openTracer } from './process/engines.ts'
import { endLeftoverChildren } from './process/leftoverChildren.ts'
import { lazyMetrics } from './process/metrics/index.ts'
import type { Sources } from './process/metrics/sources.ts'
import { openLog } from './process/openLog.ts'
import type { OpenedSandbox } from './process/openSandbox.ts'
import { openNode } from './process/openNode.ts'
import { openOperator } from './process/openOperator.ts'
import { Outages } from './process/outages.ts'
import { Readiness } from './process/readiness.ts'
import type { Node } from './process/roles/node.ts'
import { watchSkippedFacts } from './process/roles/skippedFacts.ts'
import { watchUnreadableBuilds } from './process/roles/unreadableBuilds.ts'
import { watchUntakenEvents } from './process/roles/untakenEvents.ts'
import { engineStates, watchEngines } from './process/watchEngines.ts'
import { openSecrets, type Origin } from './process/secretsFile.ts'

export interface Service {
  /** The URL at which clients reach the service. */
  readonly url: string
  /** The address at which this process listens. */
  readonly listens: string
  /** The key of the first environment. */
  readonly apiKey: string
  readonly operatorToken: string
  /** The tokens that this start generated, which are shown once. */
  readonly generated: Generated
  /** The parts that its roles share. */
  readonly node: Node
  /** Stops accepting requests, drains and closes. Resolves when every resource is closed. */
  stop(): Promise<void>
}

interface Generated {
  readonly apiKey: boolean
  readonly operatorToken: boolean
  /** The file that stores them; null when they are derived from `SVC_MASTER_KEY`. */
  readonly file: string | null
}

interface About {
  readonly version: string
  readonly git_sha: string
  readonly codeDir?: string | null
  /** Cancels a start that waits for an engine. */
  readonly signal?: AbortSignal
  /** Receives the reason why the service waits for an engine or refuses writes; null when that is over. */
  readonly stalled?: (reason: string | null) => void
}

/**
 * The composition root: opens resources in order and closes them in reverse order. The server listens from the
 * beginning; until every engine answers, `/readyz` returns 503 with the reason.
 */
export const start = async (
  config: Config,
  logger: Logger,
  { codeDir = null, signal: givenUp = new AbortController().signal, stalled = () => {}, ...about }: About,
): Promise<Service> => {
  const closers: (() => Promise<void> | void)[] = []
  const onClose = (close: () => Promise<void> | void) => void closers.push(close)
  const stopping = new AbortController()
  const stop = async (): Promise<void> => {
    stopping.abort()
    for (const close of closers.splice(0).reverse()) await close()
  }
  try {
    demandOpenFiles()
    for (const name of config.unknown) logger.warn(`${name} is not a variable of svc and has no effect`)
    onClose(lockDataDir(config.dataDir))
    const tracer = await openTracer(config, { logger, version: about.version })
    if (tracer) onClose(() => tracer.close())
    const secrets = openSecrets(config, (message) => logger.warn(message))
    const leftovers = endLeftoverChildren(config.dataDir)
    if (leftovers > 0) logger.warn('Child processes of an earlier service were ended', { leftovers })
    const outages = new Outages(logger)
    const readiness = new Readiness(stopping.signal, outages)
    const notReady = () => readiness.reason
    const status = { ...about, start_time: clock.iso() }
    const requests = new RequestMeter()
    const sources: Sources = { about, config, readiness, outages, requests }
    const metrics = lazyMetrics(sources)
    let operator: Operator | null = null
    let sandbox: OpenedSandbox | null = null
    const readyDetails = () => ({
      ...(readiness.building.length > 0 && { building: readiness.building }),
      ...(outages.current.length > 0 && { outages: outages.current }),
      ...(sources.untaken && { oldest_untaken_event_ms: sources.untaken.oldestMs }),
      ...sources.skippedFacts?.details(),
      ...sources.unreadableBuilds?.details(),
    })
    const front = createFront(
      {
        logger,
        about: status,
        notReady,
        readyDetails,
        get sandbox() {
          return sandbox?.info ?? null // chosen after the server listens
        },
        trustedProxies: config.trustedProxies,
        corsOrigins: config.corsOrigins,
        requests,
        metrics,
        operator: () => operator,
      },
      () => refusal(notReady()),
    )
    const collector = new Collector()
    onClose(() => collector.close())
    const turns = new FairTurns(collector)
    slices.join(turns)
    const server = await listen(front, { ...config, logger, onAccepted: () => turns.accepted() })
    const calls = new WaitingCalls()
    onClose(() => server.close(calls))

    const signal = AbortSignal.any([stopping.signal, givenUp])
    const waiting = (reason: string | null) => {
      readiness.waitFor(reason)
      stalled(reason)
    }
    const { roles } = config
    const runsCode = roles.has('api') || roles.has('worker')
    if (runsCode) {
      const { openSandbox } = await import('./process/openSandbox.ts')
      sandbox = await openSandbox({ config, codeDir, logger, onClose, signal, waiting })
      logger.info(`Functions run in the ${sandbox.info.tier} tier`, { reason: sandbox.info.reason })
    }
    const patiently = openPatience({ logger, signal, waiting })
    const { engines, keys } = await openEngines(config, {
      logger,
      patiently,
      opened: onClose,
      openKeys: (opened) => openLog(opened, { secrets, config, logger }),
      refusing: (reason) => {
        readiness.refusing(reason)
        stalled(reason)
      },
      damaged: (reason) => readiness.fail(reason),
    })
    watchEngines(engines, config, { outages, signal: stopping.signal })
    const node = await openNode({
      config,
      secrets,
      keys,
      engines,
      turns,
      patiently,
      starting: signal,
      readiness,
      log: {
        isReached: () => !outages.isAway('event_store'),
        isCutOff: () => outages.isCutOff('event_store'),
        isSettled: () => outages.isSettled('event_store'),
      },
      tracer,
      logger,
      onClose,
    })
    sources.node = node
    sources.skippedFacts = watchSkippedFacts(node)
    sources.unreadableBuilds = watchUnreadableBuilds(node)
    operator = openOperator(secrets, node)

    const { listenTls, serveChallenges } = await import('./process/roles/customDomains.ts')
    const tls = roles.has('api') ? await listenTls(node, front) : null
    const dnsPort = await serveChallenges(node)
    const ports = [server.port, tls?.port ?? null, dnsPort].filter((port) => port !== null)

    const runtime = sandbox
      ? (await import('./builds/openRuntime.ts')).openRuntime({
          blobs: engines.blobs,
          cacheDir: sandbox.cacheDir,
          cacheMb: config.buildCacheMb,
          ownerOf: (env_id) => node.views.directory.env(env_id)?.org_id ?? env_id,
          codeDir: sandbox.codeDir,
          egress: (await import('./process/roles/egress.ts')).startEgress(node, ports).serve,
          ...sandbox.options,
        })
      : null
    if (runtime) sources.runtime = runtime
    if (runtime) onClose(() => runtime.close())
    if (runtime) (await import('./process/roles/buildCache.ts')).sweepBuildCache(node, runtime)
    const untaken = roles.has('worker') || roles.has('saga') ? watchUntakenEvents(node) : null
    if (untaken) sources.untaken = untaken
    const claimer =
      roles.has('worker') && runtime && untaken
        ? await (await import('./process/roles/worker.ts')).startWorker(node, runtime, untaken)
        : null
    if (claimer) sources.worker = claimer
    if (roles.has('saga')) await (await import('./process/roles/saga.ts')).startSagas(node)
    const listens = `http://${isIPv6(config.host) ? `[${config.host}]` : config.host}:${server.port}`
    const url = config.publicUrl ?? listens
    if (roles.has('api') && runtime && sandbox) {
      const { createApi } = await import('./process/roles/api.ts')
      const publicUrl = () => url
      const given = {
        runtime,
        claimer,
        operator,
        requests,
        metrics,
        publicUrl,
        stopping: stopping.signal,
        calls,
        notReady,
        readyDetails,
        engineStates: () => engineStates(config, outages, engines.hints),
      }
      const { app, openCounts } = createApi(node, { ...given, about: status, sandbox: sandbox.info })
      sources.openCounts = openCounts
      server.serve(app)
      tls?.serve(app)
    }
    readiness.started()
    onClose(() => drain([server, ...(tls ? [tls] : [])], { calls, worker: claimer, isAlone: isSolo(config) }))
    const { apiKey, operatorToken, origins } = secrets
    const isNew = (origin: Origin) => origin === 'new' || (origin === 'derived' && node.isFirstKeyNew)
    const generated = {
      apiKey: isNew(origins.apiKey),
      operatorToken: isNew(origins.operatorToken),
      file: secrets.file?.path ?? null,
    }
    return { url, listens, apiKey, operatorToken, generated, node, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/** The refusal of every request except health checks. */
const refusal = (reason: string | null): AppError =>
  reason === null
    ? new AppError('not_found', 'This node has no API: SVC_ROLES leaves it out')
    : new AppError('unavailable', reason)
