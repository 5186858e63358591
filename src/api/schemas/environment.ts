import Type from 'typebox'
import { DomainStatus } from '../../events/customDomain.ts'
import { Plan } from '../../events/org.ts'
import { Timestamp, Uuid, nullable } from './parts.ts'

/** The environment, its usage and its domains. */

export const Environment = Type.Object({
  env_id: Uuid,
  org_id: Uuid,
  name: Type.String(),
  active: Type.Boolean(),
  importing: Type.Optional(
    Type.Boolean({ description: 'An import into it is not complete, and nothing else uses it' }),
  ),
})

const Percent = Type.Number({ description: 'Used share of the limit. May exceed 100; 0 if unlimited' })

const Limit = Type.Integer({ description: '-1 means unlimited' })

export const OrgUsage = Type.Object({
  org_id: Uuid,
  usage: Type.Object({
    runs_this_period: Type.Integer(),
    file_storage_bytes: Type.Integer(),
    team_members: Type.Integer(),
    call_storage_bytes: Type.Integer(),
    call_count: Type.Integer(),
  }),
  limits: Type.Object({
    runs_per_month: Limit,
    storage_bytes: Limit,
    team_members: Limit,
    call_retention_days: Limit,
    call_storage_bytes: Limit,
  }),
  usage_percent: Type.Object({
    runs: Percent,
    file_storage: Percent,
    call_storage: Percent,
    team_members: Percent,
    has_warning: Type.Boolean({ description: 'True if any percentage exceeds 90' }),
  }),
  plan: Type.Object({ name: Plan, period_start: Timestamp, period_end: Timestamp }),
  live_streams: Type.Object(
    {
      in_env: nullable(
        Type.Integer({ description: 'Those of the environment of the credential; null for the operator' }),
      ),
      in_org: Type.Integer({ description: 'Those of all environments of the organization' }),
      limit: Type.Integer({ description: 'The most that the plan allows on each node' }),
    },
    { description: 'Live streams that are open on the node that replies' },
  ),
})

export const Domain = Type.Object({
  domain_id: Uuid,
  env_id: Uuid,
  domain: Type.String(),
  status: DomainStatus,
  validation_cname_name: Type.String({
    description: 'Name of the CNAME record that proves ownership of the domain',
  }),
  validation_cname_value: Type.String({ description: 'Target of that CNAME record' }),
  routing_domain: nullable(
    Type.String({ description: 'Target of the CNAME record that routes the domain to this service' }),
  ),
  created_at: Timestamp,
  expires_at: nullable(
    Type.String({
      format: 'date-time',
      description: 'A domain that is not proved by then is removed; null for a proved domain',
    }),
  ),
  certificate_expires_at: nullable(
    Type.String({
      format: 'date-time',
      description: 'It is renewed before. Null without a certificate of this service',
    }),
  ),
  message: nullable(Type.String({ description: 'What the owner of the domain must do or know now' })),
})
