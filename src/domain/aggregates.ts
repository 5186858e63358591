import type { EventStore } from '../ports/eventStore.ts'
import { file } from './file.ts'
import { apiKey } from './apiKey.ts'
import { domains } from './customDomains.ts'
import { env } from './env.ts'
import type { DomainEvent } from '../events/index.ts'
import type { Decider } from './decider.ts'
import { CommandHandler } from './commandHandler.ts'
import { calls } from './calls.ts'
import { context } from './context.ts'
import { dataKey } from './dataKey.ts'
import { installation } from './installation.ts'
import { issued } from './issued.ts'
import { keyUse } from './keyUse.ts'
import { name } from './name.ts'
import { operatorSession } from './operatorSession.ts'
import { org } from './org.ts'
import { project } from './project.ts'
import { request } from './idempotentRequest.ts'
import { runLog } from './runLog.ts'
import { stream } from './stream.ts'
import { upload } from './upload.ts'
import { webhook } from './webhook.ts'
import { worker } from './worker.ts'

/** One command handler for each kind of stream. A node has one set, so that commands of one stream share appends. */
export const openAggregates = (store: EventStore, onUnprocessable?: (reason: string) => void) => {
  const handlerOf = <State, Command, Event extends DomainEvent>(decider: Decider<State, Command, Event>) =>
    new CommandHandler(store, decider, onUnprocessable)
  return {
    streams: handlerOf(stream),
    projects: handlerOf(project),
    names: handlerOf(name),
    webhooks: handlerOf(webhook),
    files: handlerOf(file),
    uploads: handlerOf(upload),
    installation: handlerOf(installation),
    operatorSessions: handlerOf(operatorSession),
    orgs: handlerOf(org),
    envs: handlerOf(env),
    calls: handlerOf(calls),
    apiKeys: handlerOf(apiKey),
    domains: handlerOf(domains),
    requests: handlerOf(request),
    runLogs: handlerOf(runLog),
    contexts: handlerOf(context),
    dataKeys: handlerOf(dataKey),
    issued: handlerOf(issued),
    keyUses: handlerOf(keyUse),
    workers: handlerOf(worker),
  }
}

export type Aggregates = ReturnType<typeof openAggregates>
