import Type from 'typebox'
import { Id } from './scalars.ts'

const variable = { project_id: Id, key: Type.String() }

/** `sealed` is the value as ciphertext under a data key of the project: it stands nowhere in clear (I6). */
const content = { description: Type.String(), sealed: Type.String() }

export const ContextVariableCreated = Type.Object({
  type: Type.Literal('ContextVariableCreated'),
  variable_id: Id,
  ...variable,
  ...content,
})

export const ContextVariableUpdated = Type.Object({
  type: Type.Literal('ContextVariableUpdated'),
  ...variable,
  ...content,
})

/** The same value under another data key. */
export const ContextVariableResealed = Type.Object({
  type: Type.Literal('ContextVariableResealed'),
  ...variable,
  sealed: Type.String(),
})

export const ContextVariableDeleted = Type.Object({
  type: Type.Literal('ContextVariableDeleted'),
  ...variable,
})

/** The project is being deleted: these variables are gone, and there will be no others. */
export const ContextClosed = Type.Object({
  type: Type.Literal('ContextClosed'),
  project_id: Id,
  keys: Type.Array(Type.String()),
})
