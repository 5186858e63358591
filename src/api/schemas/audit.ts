import Type from 'typebox'
import { nullable } from './parts.ts'

const fact = {
  position: Type.String({ description: 'The position in the log; sorts as text' }),
  time: Type.String({ format: 'date-time' }),
  first_time: Type.Optional(
    Type.String({
      format: 'date-time',
      description: 'On a fact of an imported environment: the time at which the other installation stored it',
    }),
  ),
  type: Type.String({ description: 'What happened, such as `ProjectRenamed`' }),
  stream: Type.String({ description: 'The stream of the event log that contains the fact' }),
  actor: Type.Object({
    credential_id: nullable(Type.String()),
    credential_type: nullable(
      Type.String({
        description:
          '`api-key`, `session`, `service-key`, `operator`, `client` (without a credential), `run` or `system`',
      }),
    ),
    ip: nullable(Type.String({ description: 'The address of the client' })),
  }),
  request_id: nullable(Type.String()),
  data: Type.Unknown({ description: 'The fields of the fact; secrets and content are `[redacted]`' }),
}

/** A fact in the audit of an environment. */
export const AuditedFact = Type.Object(fact)

/** A fact in the audit of the installation. */
export const AuditedFactOfInstallation = Type.Object({
  ...fact,
  env_id: nullable(Type.String({ format: 'uuid' })),
})

/** A fact of a replayed stream. */
export const ReplayedFact = Type.Object({
  position: fact.position,
  time: fact.time,
  type: fact.type,
  changes: Type.Unknown({
    description: 'The changed fields by their path in the state, each with `before` and `after`',
  }),
  state: Type.Unknown({ description: 'The state of the stream after the fact' }),
})
