import type { Cause } from '../events/event.ts'
import type { EventStore } from '../ports/eventStore.ts'
import { file } from './file.ts'
import { apiKey } from './apiKey.ts'
import { domains } from './customDomains.ts'
import { env } from './env.ts'
import type { DomainEvent } from '../events/index.ts'
import type { Decider } from './decider.ts'
import { type Admit, CommandHandler } from './commandHandler.ts'
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

/**
 * One command handler for each kind of stream. A node has one set, so that commands of one stream share appends.
 * `admitChange` counts commands that change what is kept for ever. Those of files and uploads are counted by their callers
 * before the content is stored, because a refused one must leave none.
 */
export const openAggregates = (
  store: EventStore,
  onUnprocessable?: (reason: string) => void,
  admitChange: (cause: Cause, command: object, counted?: 'uses') => Promise<void> | null = () => null,
) => {
  const handlerOf = <State, Command, Event extends DomainEvent>(
    decider: Decider<State, Command, Event>,
    admit?: Admit<Command>,
  ) => new CommandHandler(store, decider, onUnprocessable, admit)
  /** `endings`: commands that end something, or complete a change, are always admitted. */
  const countedOf = <State, Command extends { readonly type: string }, Event extends DomainEvent>(
    decider: Decider<State, Command, Event>,
    ...endings: readonly Command['type'][]
  ) =>
    handlerOf(decider, (command, cause) =>
      endings.includes(command.type) ? null : admitChange(cause, command),
    )
  return {
    admitChange,
    streams: handlerOf(stream),
    projects: countedOf(
      project,
      'AbandonCreation',
      'AbandonRename',
      'AbandonDeployment',
      'DeleteBuild',
      'DeleteProject',
    ),
    names: countedOf(name, 'ReleaseName'),
    webhooks: countedOf(webhook),
    files: handlerOf(file),
    uploads: handlerOf(upload),
    installation: handlerOf(installation),
    operatorSessions: handlerOf(operatorSession),
    orgs: handlerOf(org),
    envs: countedOf(env, 'ForgetConsumer'),
    calls: handlerOf(calls),
    apiKeys: handlerOf(apiKey),
    domains: countedOf(domains, 'AbandonRegistration', 'DeleteDomain', 'RemoveDomain', 'ExpireDomain'),
    requests: handlerOf(request),
    runLogs: handlerOf(runLog),
    contexts: countedOf(context, 'DeleteVariable', 'ResealVariable', 'CloseContext'),
    dataKeys: handlerOf(dataKey),
    issued: countedOf(issued, 'RevokeSession', 'RevokeSessions', 'RevokeServiceKey', 'RevokeServiceKeys'),
    keyUses: handlerOf(keyUse, (command, cause) => admitChange(cause, command, 'uses')),
    workers: handlerOf(worker),
  }
}

export type Aggregates = ReturnType<typeof openAggregates>
