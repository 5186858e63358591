import Type from 'typebox'
import { Id } from './scalars.ts'

/**
 * From now on what is sealed for the environment, or for one project of it, is sealed with this key. The key itself
 * lies wrapped in the blobs, where it can be destroyed; the log only names it.
 */
export const DataKeyCreated = Type.Object({
  type: Type.Literal('DataKeyCreated'),
  key_id: Id,
  project_id: Type.Optional(Id),
})

/** No key so far opens anything any more. `final`: and there will be no other one. */
export const DataKeysDestroyed = Type.Object({
  type: Type.Literal('DataKeysDestroyed'),
  project_id: Type.Optional(Id),
  final: Type.Boolean(),
})
