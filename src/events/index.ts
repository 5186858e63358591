import type { Static, TSchema } from 'typebox'
import * as file from './file.ts'
import * as calls from './calls.ts'
import * as context from './context.ts'
import * as dataKey from './dataKey.ts'
import * as credential from './credential.ts'
import * as domain from './customDomain.ts'
import * as installation from './installation.ts'
import * as org from './org.ts'
import * as project from './project.ts'
import * as request from './request.ts'
import * as run from './run.ts'
import * as runLog from './runLog.ts'
import * as stream from './stream.ts'
import * as upload from './upload.ts'
import * as worker from './worker.ts'

/** The catalogue of all facts, by type. Schemas are TypeBox, so they are JSON Schema too. */
export const schemaOf = {
  StreamCreated: stream.StreamCreated,
  EventPublished: stream.EventPublished,
  EventHandled: stream.EventHandled,
  StreamDataEmitted: stream.StreamDataEmitted,
  FactExpired: stream.FactExpired,
  RunRequested: run.RunRequested,
  RunStarted: run.RunStarted,
  RunBegun: run.RunBegun,
  RunSucceeded: run.RunSucceeded,
  RunFailed: run.RunFailed,
  RunRetried: run.RunRetried,
  RunCancelled: run.RunCancelled,
  RunLogged: runLog.RunLogged,
  ProjectCreated: project.ProjectCreated,
  ProjectRenamed: project.ProjectRenamed,
  ProjectNetworkChanged: project.ProjectNetworkChanged,
  SchedulePaused: project.SchedulePaused,
  ScheduleResumed: project.ScheduleResumed,
  ProjectDeleted: project.ProjectDeleted,
  BuildUploaded: project.BuildUploaded,
  BuildDeployed: project.BuildDeployed,
  BuildDeleted: project.BuildDeleted,
  DeploymentAbandoned: project.DeploymentAbandoned,
  RenameAbandoned: project.RenameAbandoned,
  CreationAbandoned: project.CreationAbandoned,
  WebhookReserved: project.WebhookReserved,
  NameReserved: project.NameReserved,
  NameReleased: project.NameReleased,
  FileStored: file.FileStored,
  FileDeleted: file.FileDeleted,
  UploadBegun: upload.UploadBegun,
  PartUploaded: upload.PartUploaded,
  UploadJoined: upload.UploadJoined,
  UploadCompleted: upload.UploadCompleted,
  UploadAborted: upload.UploadAborted,
  DomainRegistered: domain.DomainRegistered,
  RegistrationAbandoned: domain.RegistrationAbandoned,
  DomainProved: domain.DomainProved,
  ChallengePublished: domain.ChallengePublished,
  CertificateIssued: domain.CertificateIssued,
  CertificateFailed: domain.CertificateFailed,
  DomainValidated: domain.DomainValidated,
  DomainRouted: domain.DomainRouted,
  DomainActivated: domain.DomainActivated,
  DomainDiverted: domain.DomainDiverted,
  DomainReturned: domain.DomainReturned,
  DomainSuspended: domain.DomainSuspended,
  DomainDeleted: domain.DomainDeleted,
  DomainRemoved: domain.DomainRemoved,
  InstallationFounded: installation.InstallationFounded,
  MasterKeyReplaced: installation.MasterKeyReplaced,
  MasterKeyRetired: installation.MasterKeyRetired,
  LogLossAccepted: installation.LogLossAccepted,
  OperatorSignedOut: installation.OperatorSignedOut,
  OrgCreated: org.OrgCreated,
  OrgChanged: org.OrgChanged,
  OrgDeleted: org.OrgDeleted,
  EnvCreated: org.EnvCreated,
  EnvDeleted: org.EnvDeleted,
  ImportBegun: org.ImportBegun,
  ImportAbandoned: org.ImportAbandoned,
  EnvImported: org.EnvImported,
  EnvPurged: org.EnvPurged,
  ConsumerNamed: org.ConsumerNamed,
  ConsumerUsed: org.ConsumerUsed,
  ConsumerForgotten: org.ConsumerForgotten,
  ApiKeyCreated: org.ApiKeyCreated,
  ApiKeyChanged: org.ApiKeyChanged,
  ApiKeyDeleted: org.ApiKeyDeleted,
  RequestClaimed: request.RequestClaimed,
  RequestAnswered: request.RequestAnswered,
  RequestReleased: request.RequestReleased,
  ContextVariableCreated: context.ContextVariableCreated,
  ContextVariableUpdated: context.ContextVariableUpdated,
  ContextVariableResealed: context.ContextVariableResealed,
  ContextVariableDeleted: context.ContextVariableDeleted,
  ContextClosed: context.ContextClosed,
  DataKeyCreated: dataKey.DataKeyCreated,
  DataKeysDestroyed: dataKey.DataKeysDestroyed,
  SessionCreated: credential.SessionCreated,
  SessionsEnded: credential.SessionsEnded,
  ServiceKeyCreated: credential.ServiceKeyCreated,
  ServiceKeysRevoked: credential.ServiceKeysRevoked,
  ServiceKeyUsed: credential.ServiceKeyUsed,
  CallDayCounted: calls.CallDayCounted,
  CallsExpired: calls.CallsExpired,
  RunDayCounted: calls.RunDayCounted,
  WorkerStarted: worker.WorkerStarted,
  WorkerStopped: worker.WorkerStopped,
  WorkerLost: worker.WorkerLost,
} as const satisfies Record<string, TSchema>

export type EventType = keyof typeof schemaOf
export type EventOf<T extends EventType> = Static<(typeof schemaOf)[T]>
export type DomainEvent = { [T in EventType]: EventOf<T> }[EventType]
