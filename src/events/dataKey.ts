import Type from 'typebox'
import { fact, Id } from './scalars.ts'

/**
 * From now on what is sealed for the environment, or for one project of it, is sealed with this key. The key itself
 * lies wrapped in the blobs, where it can be destroyed; the log only names it.
 */
export const DataKeyCreated = fact('DataKeyCreated', { key_id: Id, project_id: Type.Optional(Id) })

/** No key so far opens anything any more. `final`: and there will be no other one. */
export const DataKeysDestroyed = fact('DataKeysDestroyed', {
  project_id: Type.Optional(Id),
  final: Type.Boolean(),
})
