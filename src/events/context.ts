import Type from 'typebox'
import { fact, Id, Name, Text } from './scalars.ts'

const variable = { project_id: Id, key: Name }

/** `sealed` is the value, encrypted under a data key of the project; the plain text is never stored (I6). */
const content = { description: Text, sealed: Type.String() }

export const ContextVariableCreated = fact('ContextVariableCreated', {
  variable_id: Id,
  ...variable,
  ...content,
})

export const ContextVariableUpdated = fact('ContextVariableUpdated', { ...variable, ...content })

/** The same value under another data key. */
export const ContextVariableResealed = fact('ContextVariableResealed', { ...variable, sealed: Type.String() })

export const ContextVariableDeleted = fact('ContextVariableDeleted', { ...variable })

/** The project is being deleted: its variables are removed, and no others can be created. */
export const ContextClosed = fact('ContextClosed', { project_id: Id, keys: Type.Array(Name) })
