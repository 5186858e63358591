import { AppError } from '../errors.ts'
import type { EventOf } from '../events/index.ts'
import { type Decider, type Folded, foreign } from './decider.ts'

interface Variable {
  readonly variable_id: string
  readonly description: string
  /** The revision of the fact that contains the value; without the values the state is small. */
  readonly revision: number
}

/** The context variables of one project. */
interface Context {
  readonly variables: Map<string, Variable>
  closed: boolean
}

interface Named {
  readonly project_id: string
  readonly key: string
}

export type ContextCommand =
  | (Named & {
      readonly type: 'CreateVariable'
      readonly variable_id: string
      readonly description: string
      readonly sealed: string
      /** The number of variables that the plan allows. */
      readonly most?: number
    })
  /** Without a description, the description stays unchanged. */
  | (Named & { readonly type: 'UpdateVariable'; readonly description?: string; readonly sealed: string })
  | (Named & { readonly type: 'DeleteVariable' })
  /** `revision`: the value that was sealed again. A later value is not replaced. */
  | (Named & { readonly type: 'ResealVariable'; readonly sealed: string; readonly revision: number })
  | { readonly type: 'CloseContext'; readonly project_id: string }

type ContextEvent = EventOf<
  | 'ContextVariableCreated'
  | 'ContextVariableUpdated'
  | 'ContextVariableResealed'
  | 'ContextVariableDeleted'
  | 'ContextClosed'
>

/** The rules of a project's context variables: a key names one variable, until the project is deleted. */
export const context: Decider<Context, ContextCommand, ContextEvent> = {
  initial: () => ({ variables: new Map(), closed: false }),

  decide(command, { variables, closed }) {
    const { project_id } = command
    if (command.type === 'CloseContext')
      return closed ? [] : [{ type: 'ContextClosed', project_id, keys: [...variables.keys()] }]
    if (closed) throw new AppError('not_found', 'No such project')
    const { key } = command
    const known = variables.get(key)
    if (command.type === 'CreateVariable') {
      if (known?.variable_id === command.variable_id) return [] // a repeated command creates one variable
      if (known) throw new AppError('context_exists', `key: the project has a context variable "${key}"`)
      const { variable_id, description, sealed, most = Infinity } = command
      if (variables.size >= most)
        throw new AppError('quota_exceeded', `The plan allows ${most} context variables per project`)
      return [{ type: 'ContextVariableCreated', variable_id, project_id, key, description, sealed }]
    }
    if (command.type === 'ResealVariable') {
      if (known?.revision !== command.revision) return []
      return [{ type: 'ContextVariableResealed', project_id, key, sealed: command.sealed }]
    }
    if (!known) throw new AppError('not_found', `No context variable "${key}"`)
    switch (command.type) {
      case 'UpdateVariable': {
        const { description = known.description, sealed } = command
        return [{ type: 'ContextVariableUpdated', project_id, key, description, sealed }]
      }
      case 'DeleteVariable':
        return [{ type: 'ContextVariableDeleted', project_id, key }]
      default:
        return command satisfies never
    }
  },

  sizeOf: ({ variables }) => variables.size,

  evolve(context, { event, revision }: Folded<ContextEvent>) {
    const { variables } = context
    switch (event.type) {
      case 'ContextVariableCreated':
        variables.set(event.key, { variable_id: event.variable_id, description: event.description, revision })
        break
      case 'ContextVariableUpdated':
      case 'ContextVariableResealed': {
        const known = variables.get(event.key)
        if (known)
          variables.set(event.key, {
            ...known,
            ...('description' in event && { description: event.description }),
            revision,
          })
        break
      }
      case 'ContextVariableDeleted':
        variables.delete(event.key)
        break
      case 'ContextClosed':
        variables.clear()
        context.closed = true
        break
      default:
        foreign(event)
    }
    return context
  },
}
