import { mkdirSync, rmSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import type Koa from 'koa'
import { createApp } from '../../api/app.ts'
import type { ApiDeps } from '../../api/deps.ts'
import { Authenticator } from '../../access/authenticator.ts'
import { CREDENTIAL_GUESSES, Guesses, UNKNOWN_NAMES } from '../../api/http/guesses.ts'
import { ApiMemory } from '../../api/http/memory.ts'
import { OrgRates } from '../../api/http/orgRates.ts'
import { OpenCounts } from '../../plans/openCounts.ts'
import { Backups } from '../../commands/backups/backups.ts'
import { EnvFeeds } from '../../api/streams/envFeed.ts'
import { useServiceKey } from '../../commands/credentials/useServiceKey.ts'
import { Offers } from '../../cluster/offers.ts'
import { keepGoing } from '../../loops/keepGoing.ts'
import { checkNode } from '../checkNode.ts'
import { cancelRebuild, readModelStatus, requestRebuild } from '../../projections/readModelStatus.ts'
import { openIdempotency } from './idempotency.ts'
import type { Node } from './node.ts'

type Given = Pick<
  ApiDeps,
  | 'runtime'
  | 'claimer'
  | 'publicUrl'
  | 'stopping'
  | 'calls'
  | 'notReady'
  | 'readyDetails'
  | 'about'
  | 'sandbox'
  | 'operator'
  | 'requests'
  | 'metrics'
> & { readonly engineStates: ApiDeps['node']['engines'] }

interface Api {
  readonly app: Koa
  readonly openCounts: OpenCounts
}

/** Creates the REST API with webhooks and streams. */
export const createApi = (node: Node, { engineStates, ...given }: Given): Api => {
  const { store, aggregates, views, blobs, payloads, keyring, dataKeys, quotas, hints, logger, config } = node
  const { masterKeys, masterKeyFile, wrappedKeys } = node
  const { node_id, liveness } = node
  const authenticator = new Authenticator({
    store,
    views,
    hints,
    keyring,
    onUse: (credential) => useServiceKey({ aggregates }, credential),
  })
  void keepGoing('The watch over credentials', (until) => authenticator.watch(until), node)
  const scratchDir = join(config.dataDir, 'uploads')
  rmSync(scratchDir, { recursive: true, force: true }) // uploads that a crash interrupted
  mkdirSync(scratchDir, { recursive: true })
  const openCounts = new OpenCounts(views.directory)
  const app = createApp({
    ...given,
    store,
    aggregates,
    views,
    blobs,
    payloads,
    keyring,
    dataKeys,
    masterKeys,
    masterKeyFile,
    wrappedKeys,
    quotas,
    offers: liveness && new Offers(hints, views.directory),
    memory: new ApiMemory(views.directory),
    openCounts,
    readModels: {
      status: () => readModelStatus(node),
      rebuild: (names, options) => requestRebuild(node.readModels, { names, ...options }),
      cancelRebuild: (names) => cancelRebuild(node.readModels, names),
    },
    orgRates: new OrgRates({ limiter: node.limiter, directory: views.directory, turns: node.turns }),
    authenticator,
    guesses: new Guesses({ ...CREDENTIAL_GUESSES, logger }),
    asks: new Guesses({ ...UNKNOWN_NAMES, logger }),
    idempotency: openIdempotency(node, given.stopping),
    backups: new Backups({ store, aggregates, blobs, logger }),
    feeds: new EnvFeeds(store, node),
    tracer: node.tracer,
    dns: node.dns,
    certificates: node.certificates,
    node: {
      node_id,
      roles: [...config.roles],
      engines: engineStates,
      nodes: async () =>
        (await liveness?.nodes()) ?? [{ node_id, host: hostname(), roles: [...config.roles] }],
      checks: () => checkNode(node, given),
    },
    domainsZone: config.domainsZone,
    domainRecheckMs: config.domainRecheckMs,
    trustedProxies: config.trustedProxies,
    corsOrigins: config.corsOrigins,
    operatorHost: config.operatorHost,
    logger,
    sseTimeoutMs: config.sseTimeoutMs,
    webhookTimeoutMs: config.webhookTimeoutMs,
    scratchDir,
  })
  return { app, openCounts }
}
