import type { EventStore } from '../ports/eventStore.ts'
import { file } from './file.ts'
import { apiKey } from './apiKey.ts'
import { domains } from './customDomains.ts'
import { env } from './env.ts'
import { CommandHandler } from './commandHandler.ts'
import { context } from './context.ts'
import { dataKey } from './dataKey.ts'
import { issued } from './issued.ts'
import { name } from './name.ts'
import { org } from './org.ts'
import { project } from './project.ts'
import { request } from './request.ts'
import { runLog } from './runLog.ts'
import { stream } from './stream.ts'
import { upload } from './upload.ts'
import { webhook } from './webhook.ts'
import { worker } from './worker.ts'

/** One command handler for each kind of stream. A node has one set, so that commands of one stream share appends. */
export const openAggregates = (store: EventStore) => ({
  streams: new CommandHandler(store, stream),
  projects: new CommandHandler(store, project),
  names: new CommandHandler(store, name),
  webhooks: new CommandHandler(store, webhook),
  files: new CommandHandler(store, file),
  uploads: new CommandHandler(store, upload),
  orgs: new CommandHandler(store, org),
  envs: new CommandHandler(store, env),
  apiKeys: new CommandHandler(store, apiKey),
  domains: new CommandHandler(store, domains),
  requests: new CommandHandler(store, request),
  runLogs: new CommandHandler(store, runLog),
  contexts: new CommandHandler(store, context),
  dataKeys: new CommandHandler(store, dataKey),
  issued: new CommandHandler(store, issued),
  workers: new CommandHandler(store, worker),
})

export type Aggregates = ReturnType<typeof openAggregates>
