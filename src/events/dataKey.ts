import Type from 'typebox'
import { fact, Id } from './scalars.ts'

/**
 * From now on, this key seals the secrets of the environment, or of one of its projects. The key itself is in the blobs,
 * encrypted, where it can be destroyed; the log only names it.
 */
export const DataKeyCreated = fact('DataKeyCreated', { key_id: Id, project_id: Type.Optional(Id) })

/**
 * All keys so far are destroyed and unseal nothing. `final`: no other key can be created. `key_ids`: only these are destroyed, because
 * the installation into which the fact was imported has keys of its own.
 */
export const DataKeysDestroyed = fact('DataKeysDestroyed', {
  project_id: Type.Optional(Id),
  final: Type.Boolean(),
  key_ids: Type.Optional(Type.Array(Id)),
})
