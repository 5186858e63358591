import Type from 'typebox'
import { fact, Id, Text, Time } from './scalars.ts'

/** Id of a master key: a hash of a key that is derived from it. Each wrapped key names it. */
const MasterKeyId = Type.String()

/**
 * The first start. `root_key_id` is also the first id of this log. `replaces`: the ids of logs that are missing, which an
 * operator has given up. `canary` is a random text, sealed with the master key: a start with another key is refused. The blob
 * of `root_key_id` contains the key from which everything that outlives a master key is derived.
 */
export const InstallationFounded = fact('InstallationFounded', {
  root_key_id: Id,
  master_key_id: MasterKeyId,
  canary: Type.String(),
  replaces: Type.Optional(Type.Array(Id)),
})

/** From now on, this master key wraps every new key, and the keys that the former one has wrapped are wrapped again. */
export const MasterKeyReplaced = fact('MasterKeyReplaced', {
  master_key_id: MasterKeyId,
  replaces: MasterKeyId,
  canary: Type.String(),
  at: Time,
})

/** No key is wrapped with this master key any more. `rewrapped`: the number of keys that were wrapped again. */
export const MasterKeyRetired = fact('MasterKeyRetired', {
  master_key_id: MasterKeyId,
  rewrapped: Type.Integer(),
  at: Time,
})

/**
 * An operator has accepted that facts are lost. `log_id` is the id of the log from now on: what was derived from it before
 * is built again. `acceptance` is what the operator was asked to repeat.
 */
export const LogLossAccepted = fact('LogLossAccepted', {
  log_id: Id,
  loss: Text,
  acceptance: Type.String(),
  at: Time,
})

/** The cookie of this session of the operator admits no more. */
export const OperatorSignedOut = fact('OperatorSignedOut', { session_id: Id, at: Time })
