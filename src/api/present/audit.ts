import type { ReplayedFact } from '../../commands/audit/replayStream.ts'
import { isId } from '../../ids.ts'
import { REDACTED } from '../../events/redact.ts'
import type { AuditDoc } from '../../projections/audit.ts'

/** An audited fact as clients receive it. */
export const presentAudited = ({
  position,
  at,
  first_at,
  type,
  stream,
  actor,
  actor_type,
  ip,
  request_id,
  data,
}: AuditDoc) => ({
  position,
  time: at,
  ...(first_at !== null && { first_time: first_at }),
  type,
  stream,
  actor: { credential_id: actor === '' ? null : actor, credential_type: actor_type, ip },
  request_id,
  data,
})

/** The same for a tenant, from which the address of the operator is kept. */
export const presentToTenant = (doc: AuditDoc) =>
  presentAudited(doc.actor_type === 'operator' && doc.ip !== null ? { ...doc, ip: REDACTED } : doc)

/** The same for the operator, with its environment. */
export const presentToOperator = (doc: AuditDoc) => ({
  ...presentAudited(doc),
  env_id: isId(doc.env_id) ? doc.env_id : null, // keys of the operator's requests belong to no environment
})

/** A fact of a replayed stream as the operator receives it. */
export const presentReplayed = ({ fact: { cursor, at, event }, changes, state }: ReplayedFact) => ({
  position: cursor,
  time: at,
  type: event.type,
  changes,
  state,
})
