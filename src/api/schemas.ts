/** The resources of SPEC.md as the API returns them. Each is a component of the OpenAPI document. */

export { ErrorLocation, RunError, RunType, Thrown } from '../events/run.ts'
export { AuditedFact, AuditedFactOfInstallation, ReplayedFact } from './schemas/audit.ts'
export {
  ApiKey,
  NewApiKey,
  RotatedApiKey,
  Session,
  NewSession,
  ServiceKey,
  NewServiceKey,
  RevokedCount,
  SignIn,
  SignInTicket,
  OperatorSignIn,
} from './schemas/credentials.ts'
export { Environment, OrgUsage, Domain } from './schemas/environment.ts'
export { FileUpload, File, UploadedPart, MultipartUpload, UploadUnderWay } from './schemas/files.ts'
export {
  MasterKeyStatus,
  ImportedEnv,
  Backup,
  ReadModelStatus,
  AbandonedEvent,
  SkippedFact,
  Org,
  EngineState,
  LivingNode,
  NodeStatus,
  Check,
} from './schemas/operator.ts'
export {
  Network,
  Project,
  BuildFunction,
  ProjectFunction,
  BuildUpload,
  Build,
  BuildChanges,
  DeployedBuild,
  BuildOfEnv,
  ContextVariable,
  RotatedDataKey,
  EventHandler,
  Schedule,
  RequestedRun,
  Webhook,
} from './schemas/projects.ts'
export {
  CalledFunction,
  Event,
  PublishedEvent,
  RunStatus,
  Run,
  RunInput,
  RunExplanation,
  RunLogs,
  RunTrace,
  TraceNode,
  RunStats,
  RunSeries,
} from './schemas/runs.ts'
export { Permissions, ServiceKeyPermissions } from './schemas/parts.ts'
