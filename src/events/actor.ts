/**
 * The kind of the actor of a fact: a credential; the operator; a client without a credential, such as the caller of a
 * public webhook; a run; or a task of the service itself.
 */
export type ActorType = 'api-key' | 'session' | 'service-key' | 'operator' | 'client' | 'run' | 'system'

/** The tasks of the service that store facts on their own. */
export type SystemTask =
  | 'consumers'
  | 'data-keys'
  | 'domains'
  | 'master-key'
  | 'purge'
  | 'recovery'
  | 'retention'
  | 'retries'
  | 'schedules'
  | 'setup'
  | 'uploads'
  | 'worker'

/** The actor of a fact. Each field is absent if it does not apply, or if svc 0.1.0 stored the fact. */
export interface Actor {
  /** Id of the credential or run, or the name of the task; `operator` for the operator. */
  readonly actor?: string
  readonly actor_type?: ActorType
  /** The address of the client whose request stored the fact. */
  readonly ip?: string
}

/** The actor of a fact that the service stores without a request. */
export const bySystem = (task: SystemTask) => ({ actor: task, actor_type: 'system' }) as const

/** The actor of a fact that a function stores through the SDK. */
export const byRun = (run_id: string) => ({ actor: run_id, actor_type: 'run' }) as const

/** The actor of a fact, for facts that follow from it on behalf of the same actor. */
export const actorOf = ({ actor, actor_type, ip }: Actor): Actor => ({
  ...(actor !== undefined && { actor }),
  ...(actor_type !== undefined && { actor_type }),
  ...(ip !== undefined && { ip }),
})

/** The address as a field of the actor; a connection that was closed meanwhile has none. */
export const fromAddress = (ip: string): Pick<Actor, 'ip'> => (ip === '' ? {} : { ip })
