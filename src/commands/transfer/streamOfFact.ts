import type { DomainEvent } from '../../events/index.ts'
import { streamOf } from '../../events/streams.ts'

/**
 * The stream to which a fact of an environment belongs, if it is transferred to another installation; else null. Left out
 * are the environment itself, credentials, uploads in progress, custom domains and replies for an Idempotency-Key: they
 * are bound to the installation.
 */
export const streamOfFact = (event: DomainEvent, env_id: string): string | null => {
  switch (event.type) {
    case 'StreamCreated':
    case 'EventPublished':
    case 'EventHandled':
    case 'StreamDataEmitted':
    case 'RunRequested':
    case 'RunStarted':
    case 'RunBegun':
    case 'RunSucceeded':
    case 'RunFailed':
    case 'RunRetried':
    case 'RunCancelled':
      return streamOf.stream(event.stream_id)
    case 'RunLogged':
      return streamOf.runLog(event.run_id)
    case 'ProjectCreated':
    case 'ProjectRenamed':
    case 'ProjectNetworkChanged':
    case 'SchedulePaused':
    case 'ScheduleResumed':
    case 'ProjectDeleted':
    case 'BuildUploaded':
    case 'BuildDeployed':
    case 'BuildDeleted':
    case 'DeploymentAbandoned':
    case 'RenameAbandoned':
    case 'CreationAbandoned':
      return streamOf.project(event.project_id)
    case 'NameReserved':
    case 'NameReleased':
      return streamOf.projectName(env_id, event.name)
    case 'WebhookReserved':
      return streamOf.webhook(env_id, event)
    case 'FileStored':
    case 'FileDeleted':
      return streamOf.file(env_id, event.path)
    case 'ContextVariableCreated':
    case 'ContextVariableUpdated':
    case 'ContextVariableResealed':
    case 'ContextVariableDeleted':
    case 'ContextClosed':
      return streamOf.context(event.project_id)
    case 'DataKeyCreated':
    case 'DataKeysDestroyed':
      return streamOf.dataKeys(event.project_id ?? env_id)
    case 'CallDayCounted':
    case 'RunDayCounted':
    case 'CallsExpired':
      return streamOf.calls(env_id)
    case 'FactExpired':
    case 'UploadBegun':
    case 'PartUploaded':
    case 'UploadJoined':
    case 'UploadCompleted':
    case 'UploadAborted':
    case 'DomainRegistered':
    case 'RegistrationAbandoned':
    case 'DomainProved':
    case 'ChallengePublished':
    case 'CertificateIssued':
    case 'CertificateFailed':
    case 'DomainValidated':
    case 'DomainRouted':
    case 'DomainActivated':
    case 'DomainDiverted':
    case 'DomainReturned':
    case 'DomainSuspended':
    case 'DomainDeleted':
    case 'DomainRemoved':
    case 'InstallationFounded':
    case 'MasterKeyReplaced':
    case 'MasterKeyRetired':
    case 'LogLossAccepted':
    case 'OperatorSignedOut':
    case 'OrgCreated':
    case 'OrgChanged':
    case 'OrgDeleted':
    case 'EnvCreated':
    case 'EnvDeleted':
    case 'ImportBegun':
    case 'ImportAbandoned':
    case 'EnvImported':
    case 'EnvPurged':
    case 'ConsumerNamed':
    case 'ConsumerUsed':
    case 'ConsumerForgotten':
    case 'ApiKeyCreated':
    case 'ApiKeyChanged':
    case 'ApiKeyDeleted':
    case 'RequestClaimed':
    case 'RequestAnswered':
    case 'RequestReleased':
    case 'SessionCreated':
    case 'SessionsEnded':
    case 'ServiceKeyCreated':
    case 'ServiceKeysRevoked':
    case 'ServiceKeyUsed':
    case 'WorkerStarted':
    case 'WorkerStopped':
    case 'WorkerLost':
      return null
    default:
      event satisfies never // a new type does not compile without the decision: a gap would end the import of its stream
      return null
  }
}
