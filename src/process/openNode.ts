import { hostname } from 'node:os'
import { Liveness } from '../cluster/liveness.ts'
import { followMasterKeys } from '../commands/installation/followMasterKeys.ts'
import { watchHead } from '../commands/installation/watchHead.ts'
import { ensureFirstTenant } from '../commands/orgs/ensureFirstTenant.ts'
import { hasExpired } from '../commands/orgs/hasExpired.ts'
import { Payloads } from '../content/payloads.ts'
import { openAggregates } from '../domain/aggregates.ts'
import { newId } from '../ids.ts'
import type { FairTurns } from '../loops/fairTurns.ts'
import { keepGoing } from '../loops/keepGoing.ts'
import { type Patiently, whileStarting } from '../loops/patience.ts'
import type { Logger } from '../logger.ts'
import { laterNow } from '../loops/twoClocks.ts'
import type { Tracer } from '../ports/tracer.ts'
import { ChangeRates } from '../plans/changeRates.ts'
import { Quotas } from '../plans/quotas.ts'
import { buildingShares } from '../projections/buildingReason.ts'
import { allNames } from '../projections/index.ts'
import { serveEarlier } from '../projections/serveEarlier.ts'
import { openViews } from '../projections/views.ts'
import { watchVersions } from '../projections/watchVersions.ts'
import { DataKeys } from '../secrets/dataKeys.ts'
import { Keyring } from '../secrets/keyring.ts'
import { WrappedKeys } from '../secrets/wrappedKeys.ts'
import { type Config, isEmbeddedUrl, isSolo } from './config.ts'
import type { Engines } from './engines.ts'
import { openFill } from './filling/fill.ts'
import type { OpenedMasterKeys } from './openMasterKeys.ts'
import type { Readiness } from './readiness.ts'
import type { Node } from './roles/node.ts'
import { startProjecting } from './roles/projector.ts'
import type { Secrets } from './secretsFile.ts'

/** A node that waits this long for its read models logs a warning. */
const PATIENCE_MS = 5000

interface Given {
  readonly config: Config
  readonly secrets: Secrets
  readonly keys: OpenedMasterKeys
  readonly engines: Engines
  readonly patiently: Patiently
  readonly starting: AbortSignal
  readonly readiness: Readiness
  readonly log: Node['log']
  readonly tracer: Tracer | null
  readonly logger: Logger
  readonly onClose: Node['onClose']
  readonly turns: FairTurns
}

/**
 * Opens the parts that every role needs, from the aggregates to the read models, and creates the first tenant. Resolves
 * when the read models have caught up with the log.
 */
export const openNode = async ({
  config,
  secrets,
  keys: { masterKeys, rootKey, isFirstMasterKey },
  engines,
  turns,
  patiently,
  starting,
  readiness,
  log,
  tracer,
  logger,
  onClose,
}: Given): Promise<Node & { readonly isFirstKeyNew: boolean }> => {
  const { store, readModels, blobs } = engines
  const { roles } = config
  const ending = new AbortController()
  const { signal } = ending
  const background = { signal, logger, onGivenUp: (reason: string) => readiness.fail(reason) }

  const node_id = newId()
  const liveness = isSolo(config) ? null : new Liveness(readModels)
  const joined = liveness?.join(node_id, {
    announced: { reads: allNames, host: hostname(), roles: [...roles] },
  })
  if (liveness) {
    void keepGoing('The liveness', (until) => liveness.run(until), background)
    onClose(() => liveness.leave().catch(() => {})) // otherwise the other nodes notice only after a timeout
  }
  onClose(() => ending.abort())

  const changes = new ChangeRates(engines.limiter)
  const aggregates = openAggregates(store, background.onGivenUp, changes.admit)
  if (!isEmbeddedUrl(config.eventStore))
    void keepGoing('The watch over the end of the log', watchHead(store), background)
  const payloads = new Payloads(blobs, {
    now: () => laterNow(store),
    isExpired: (key) => hasExpired({ aggregates }, key),
  })
  const wrappedKeys = new WrappedKeys(blobs, masterKeys)
  const dataKeys = new DataKeys({ keys: aggregates.dataKeys, wrapped: wrappedKeys })
  void keepGoing('The watch over data keys', (until) => dataKeys.watch(store, until), background)
  const masterKeyFile = secrets.file
  const following = { store, aggregates, wrappedKeys, masterKeys, masterKeyFile, logger }
  void keepGoing(
    'The watch over master keys',
    (until) => followMasterKeys(following, { rewraps: roles.has('saga') }, until),
    background,
  )
  const keyring = new Keyring(rootKey, dataKeys)
  // A key that is derived from a later master key is none of this installation's.
  const hasFirstKey = secrets.origins.apiKey !== 'derived' || isFirstMasterKey
  const isFirstKeyNew =
    roles.has('api') &&
    hasFirstKey &&
    (await patiently(() => ensureFirstTenant({ aggregates, keyring }, { token: secrets.apiKey })))

  if (joined) await whileStarting(starting, joined) // before the first read: no other node drops what this one reads
  if (!liveness) await patiently(() => serveEarlier({ readModels, logger })) // a cluster decides it by liveness
  const { progress, projectors } = startProjecting(
    {
      ...engines,
      ...background,
      node_id,
      liveness,
      log,
      ...(!liveness && { fill: openFill({ dataDir: config.dataDir, store, readModels, logger }) }),
    },
    roles.has('projector'),
  )
  const head = await patiently(() => store.head())
  const patience = setTimeout(
    () => logger.warn(`${readiness.waiting}; if this does not end, check that a node has the role projector`),
    PATIENCE_MS,
  )
  onClose(() => clearTimeout(patience))
  const views = await patiently(() => {
    readiness.waitForBuilding(() => buildingShares(progress.building, { store, head }))
    const deps = { store, readModels, payloads, progress, ...background }
    return whileStarting(starting, openViews(deps, signal))
  })
  clearTimeout(patience)

  if (liveness)
    void keepGoing(
      'The watch over the read models',
      (until) => watchVersions({ readModels }, until),
      background,
    )

  changes.follow(views.directory)
  const quotas = new Quotas(views)
  return {
    ...engines,
    ...background,
    patiently,
    starting,
    config,
    node_id,
    log,
    hasEarlierKeys: secrets.masterKey.equals(rootKey),
    aggregates,
    payloads,
    keyring,
    dataKeys,
    masterKeys,
    masterKeyFile,
    wrappedKeys,
    views,
    projectors,
    progress,
    quotas,
    turns,
    tracer,
    liveness,
    isFirstKeyNew,
    onClose,
  }
}
