import { orderOf, type Projection } from './projection.ts'

/** A context variable (SPEC.md) without its value: only running functions read values. */
export type ContextVariableDoc = {
  readonly key: string
  readonly project_id: string
  readonly description: string
  readonly created_at: string
  readonly updated_at: string
  readonly order: string
}

export const variableId = (project_id: string, key: string): string => `${project_id}/${key}`

export const contextVariables: Projection<ContextVariableDoc> = {
  name: 'context_variables',
  version: 2,
  indexes: [{ equal: ['project_id'], sort: 'order', counted: true }],
  decidesAccess: true,
  handles: ['ContextVariableCreated', 'ContextVariableUpdated', 'ContextVariableDeleted', 'ContextClosed'],

  idsOf({ event }) {
    switch (event.type) {
      case 'ContextVariableCreated':
      case 'ContextVariableUpdated':
      case 'ContextVariableDeleted':
        return [variableId(event.project_id, event.key)]
      case 'ContextClosed':
        return event.keys.map((key) => variableId(event.project_id, key))
      default:
        return []
    }
  },

  evolve(doc, recorded) {
    const { event, at } = recorded
    switch (event.type) {
      case 'ContextVariableCreated': {
        const { key, project_id, description } = event
        return { key, project_id, description, created_at: at, updated_at: at, order: orderOf(recorded) }
      }
      case 'ContextVariableUpdated':
        return doc && { ...doc, description: event.description, updated_at: at }
      case 'ContextVariableDeleted':
      case 'ContextClosed':
        return null
      default:
        return doc
    }
  },
}
