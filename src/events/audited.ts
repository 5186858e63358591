import type { KnownFact } from './event.ts'
import type { EventType } from './index.ts'

/**
 * `change`: a change of the configuration, of files or of credentials. `traffic`: runs, events and their data, which
 * have lists of their own. `bookkeeping`: how the service makes a change, not the change itself.
 */
type Kind = 'change' | 'traffic' | 'bookkeeping'

/** Every type of fact has a kind: a new type does not compile without the decision. */
const kindOf: { readonly [T in EventType]: Kind } = {
  StreamCreated: 'traffic',
  EventPublished: 'traffic',
  EventHandled: 'traffic',
  StreamDataEmitted: 'traffic',
  FactExpired: 'bookkeeping',
  RunRequested: 'traffic',
  RunStarted: 'traffic',
  RunBegun: 'traffic',
  RunSucceeded: 'traffic',
  RunFailed: 'traffic',
  RunRetried: 'traffic',
  RunCancelled: 'traffic',
  RunLogged: 'traffic',
  ProjectCreated: 'change',
  ProjectRenamed: 'change',
  ProjectNetworkChanged: 'change',
  SchedulePaused: 'change',
  ScheduleResumed: 'change',
  ProjectDeleted: 'change',
  BuildUploaded: 'change',
  BuildDeployed: 'change',
  BuildDeleted: 'change',
  DeploymentAbandoned: 'bookkeeping',
  RenameAbandoned: 'bookkeeping',
  CreationAbandoned: 'bookkeeping',
  WebhookReserved: 'bookkeeping',
  NameReserved: 'bookkeeping',
  NameReleased: 'bookkeeping',
  FileStored: 'change',
  FileDeleted: 'change',
  UploadBegun: 'change',
  PartUploaded: 'bookkeeping',
  UploadJoined: 'bookkeeping',
  UploadCompleted: 'change',
  UploadAborted: 'change',
  DomainRegistered: 'change',
  RegistrationAbandoned: 'bookkeeping',
  DomainProved: 'change',
  ChallengePublished: 'bookkeeping',
  CertificateIssued: 'change',
  CertificateFailed: 'bookkeeping',
  DomainValidated: 'change',
  DomainRouted: 'change',
  DomainActivated: 'change',
  DomainDiverted: 'change',
  DomainReturned: 'change',
  DomainSuspended: 'change',
  DomainDeleted: 'change',
  DomainRemoved: 'change',
  InstallationFounded: 'change',
  MasterKeyReplaced: 'change',
  MasterKeyRetired: 'change',
  LogLossAccepted: 'change',
  OperatorSignedOut: 'change',
  OrgCreated: 'change',
  OrgChanged: 'change',
  OrgDeleted: 'change',
  EnvCreated: 'change',
  EnvDeleted: 'change',
  ImportBegun: 'change',
  ImportAbandoned: 'change',
  EnvImported: 'change',
  EnvPurged: 'change',
  ConsumerNamed: 'change',
  ConsumerUsed: 'bookkeeping',
  ConsumerForgotten: 'change',
  ApiKeyCreated: 'change',
  ApiKeyChanged: 'change',
  ApiKeyDeleted: 'change',
  RequestClaimed: 'bookkeeping',
  RequestAnswered: 'bookkeeping',
  RequestReleased: 'bookkeeping',
  ContextVariableCreated: 'change',
  ContextVariableUpdated: 'change',
  ContextVariableResealed: 'bookkeeping',
  ContextVariableDeleted: 'change',
  ContextClosed: 'change',
  DataKeyCreated: 'change',
  DataKeysDestroyed: 'change',
  SessionCreated: 'change',
  SessionsEnded: 'change',
  ServiceKeyCreated: 'change',
  ServiceKeysRevoked: 'change',
  ServiceKeyUsed: 'bookkeeping',
  CallDayCounted: 'bookkeeping',
  RunDayCounted: 'bookkeeping',
  CallsExpired: 'change',
  WorkerStarted: 'bookkeeping',
  WorkerStopped: 'bookkeeping',
  WorkerLost: 'bookkeeping',
}

/** Types of traffic with facts that a person caused by hand: evaluated code, schedules, replays and cancellations. */
const BY_HAND = ['EventPublished', 'EventHandled', 'RunRequested', 'RunStarted', 'RunCancelled'] as const

const typesOf = (kind: Kind): EventType[] =>
  (Object.keys(kindOf) as EventType[]).filter((type) => kindOf[type] === kind)

/** The types of facts in the audit. */
export const AUDITED: readonly EventType[] = [...typesOf('change'), ...BY_HAND].sort()

/** Whether a caller stored the fact. Facts of svc 0.1.0 have no actor. */
const isOfCaller = ({ actor_type }: KnownFact['metadata']): boolean =>
  actor_type !== undefined && actor_type !== 'system'

const isByHand = ({ event, metadata }: KnownFact): boolean => {
  switch (event.type) {
    case 'EventPublished':
      return metadata.actor_type === 'operator' // published again; other events have a list of their own
    case 'EventHandled':
      return event.cancelled_run_id !== undefined && isOfCaller(metadata)
    case 'RunRequested':
      return (
        event.returned_by === undefined &&
        ('code' in event.target || (event.run_type === 'schedule' && isOfCaller(metadata)))
      )
    case 'RunStarted':
      return event.replay_of !== undefined && event.attempt === 1 && event.reclaimed !== true
    case 'RunCancelled':
      return isOfCaller(metadata)
    default:
      return false
  }
}

/** Whether the audit contains a fact. */
export const isAudited = (fact: KnownFact): boolean => {
  const { event } = fact
  if (kindOf[event.type] !== 'change') return isByHand(fact)
  if (event.type === 'CallsExpired') return event.up_to === undefined // the last fact of a removal has none
  return event.type !== 'SessionsEnded' || event.reason === 'revoked' // expired ones are recorded by the next session
}

/** Whether an audited fact belongs to runs: it is kept as long as the runs of the organization. */
export const isOfRuns = ({ event, metadata }: KnownFact): boolean =>
  kindOf[event.type] === 'traffic' || metadata.actor_type === 'run'
