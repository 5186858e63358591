import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type Koa from 'koa'
import { createApp } from '../api/app.ts'
import type { ApiDeps } from '../api/deps.ts'
import { Authenticator } from '../api/http/authenticate.ts'
import { Operator } from '../api/http/operator.ts'
import { EnvFeeds } from '../api/streams/envFeed.ts'
import { keepGoing } from '../keepGoing.ts'
import { type Node, openFiles } from './node.ts'

type Given = Pick<ApiDeps, 'runtime' | 'claimer' | 'publicUrl' | 'stopping' | 'notReady' | 'about'> & {
  readonly operatorToken: string
}

/** The REST API, webhooks and streams. */
export const createApi = (node: Node, { operatorToken, ...given }: Given): Koa => {
  const { store, commands, views, blobs, payloads, keyring, log, signal, config } = node
  const authenticator = new Authenticator({ views, keyring })
  void keepGoing('The credential watch', (until) => authenticator.watch(store, until), { signal, log })
  const scratchDir = join(config.dataDir, 'uploads')
  rmSync(scratchDir, { recursive: true, force: true }) // what a crash left of uploads
  mkdirSync(scratchDir, { recursive: true })
  return createApp({
    ...given,
    store,
    commands,
    views,
    blobs,
    payloads,
    files: openFiles(node),
    keyring,
    authenticator,
    operator: new Operator({ token: operatorToken, keyring }),
    feeds: new EnvFeeds(store, { log, signal }),
    log,
    sseTimeoutMs: config.sseTimeoutMs,
    webhookTimeoutMs: config.webhookTimeoutMs,
    scratchDir,
  })
}
