import fc from 'fast-check'
import { createVariable } from '../../../src/commands/context/createVariable.ts'
import { deleteVariable } from '../../../src/commands/context/deleteVariable.ts'
import { readVariable } from '../../../src/commands/context/readVariable.ts'
import { updateVariable } from '../../../src/commands/context/updateVariable.ts'
import { destroyDataKeys } from '../../../src/commands/dataKeys/destroyDataKeys.ts'
import { rotateDataKeys } from '../../../src/commands/dataKeys/rotateDataKeys.ts'
import { rewrapKeys } from '../../../src/commands/installation/rewrapKeys.ts'
import { rotateMasterKey } from '../../../src/commands/installation/rotateMasterKey.ts'
import { createProject } from '../../../src/commands/projects/createProject.ts'
import { deleteProject } from '../../../src/commands/projects/deleteProject.ts'
import { isAppError } from '../../../src/errors.ts'
import { refuse, type Scenario, type Subject } from '../subject.ts'
import { Ids, type ModelNode, type World } from '../world.ts'

type Command =
  | {
      readonly op: 'create'
      readonly project: string
      readonly key: string
      readonly value: string
      readonly request: string
    }
  | {
      readonly op: 'update'
      readonly project: string
      readonly key: string
      readonly value: string
      readonly text: string | null
    }
  | { readonly op: 'delete'; readonly project: string; readonly key: string }
  | { readonly op: 'read'; readonly project: string; readonly key: string }
  | { readonly op: 'rotate' }
  | { readonly op: 'destroy' }
  | { readonly op: 'rotateMaster' }
  | { readonly op: 'rewrap' }
  | { readonly op: 'deleteProject'; readonly project: string }

interface Variable {
  /** Null after the destruction of its data key. */
  value: string | null
  text: string
  request: string
}

/** The variables of each project; null after its deletion. */
type State = Record<string, Record<string, Variable> | null>

const KEYS = ['key_a', 'key_b']
const project = fc.constantFrom('left', 'right')
const key = fc.oneof(
  { weight: 9, arbitrary: fc.constantFrom(...KEYS) },
  { weight: 1, arbitrary: fc.constant('wrong key') },
)
const value = fc.string({ maxLength: 12, unit: 'grapheme' })
const op = <const T extends string>(...values: T[]) => fc.constantFrom(...values)

/** The context variables of projects, and the data keys that seal them. */
export const context: Subject<State, Command> = {
  name: 'context',
  initial: { left: {}, right: {} },

  commands: fc.oneof(
    {
      weight: 18,
      arbitrary: fc.record({
        op: op('create'),
        project,
        key,
        value,
        request: fc.constantFrom('r0', 'r1', 'r2', 'r3', 'r4', 'r5'),
      }),
    },
    {
      weight: 15,
      arbitrary: fc.record({
        op: op('update'),
        project,
        key,
        value,
        text: fc.constantFrom(null, 'new text'),
      }),
    },
    { weight: 18, arbitrary: fc.record({ op: op('delete', 'read', 'read'), project, key }) },
    { weight: 6, arbitrary: fc.record({ op: op('rotate', 'rotate', 'destroy', 'rotateMaster', 'rewrap') }) },
    { weight: 1, arbitrary: fc.record({ op: op('deleteProject'), project: op('right') }) },
  ),

  step(state, command) {
    if (command.op === 'rotate' || command.op === 'rotateMaster' || command.op === 'rewrap') return
    if (command.op === 'destroy') {
      for (const variables of Object.values(state))
        for (const variable of Object.values(variables ?? {})) variable.value = null
      return
    }
    if (command.op === 'create' && command.key === 'wrong key') refuse('bad_request')
    const variables = state[command.project] ?? refuse('not_found')
    if (command.op === 'deleteProject') {
      state[command.project] = null
      return
    }
    const known = variables[command.key]
    if (command.op === 'create') {
      if (known?.request === command.request) return
      if (known) refuse('context_exists')
      variables[command.key] = { value: command.value, text: command.request, request: command.request }
      return
    }
    if (!known) return refuse('not_found')
    if (command.op === 'read') return known.value ?? refuse('not_found')
    if (command.op === 'delete') delete variables[command.key]
    else Object.assign(known, { value: command.value, ...(command.text !== null && { text: command.text }) })
    return
  },

  view: (state) =>
    Object.fromEntries(
      Object.entries(state).map(([name, variables]) => [
        name,
        variables &&
          Object.fromEntries(
            Object.entries(variables).map(([key, { value, text }]) => [key, { value, text }]),
          ),
      ]),
    ),

  repeats: ({ op }) => op !== 'rotate',

  excuse(command, other) {
    // A key may be destroyed while it is created or replaced; the caller repeats the command.
    const seals = command.op === 'rotate' || command.op === 'create' || command.op === 'update'
    return seals && other.op === 'destroy' ? { refused: ['conflict'] } : {}
  },

  open: (world) => open(world),
}

const open = async (world: World): Promise<Scenario<Command>> => {
  const { env_id } = await world.openEnv()
  const ids = new Ids()
  const idOf = (project: string): string => ids.of(`${project} project`)
  for (const name of Object.keys(context.initial))
    await createProject(world.node(0), { name }, ids.caller(env_id, name))
  const read = (node: ModelNode, project: string, key: string) =>
    readVariable(node, { env_id, project_id: idOf(project), key })

  const perform = async (node: ModelNode, command: Command): Promise<unknown> => {
    const { cause } = ids.caller(env_id, 'other')
    if (command.op === 'rotate') return void (await rotateDataKeys(node, { env_id }, cause))
    if (command.op === 'rotateMaster') return void (await rotateMasterKey(node, {}, cause))
    if (command.op === 'rewrap') return void (await rewrapKeys(node, new AbortController().signal))
    if (command.op === 'destroy') return destroyDataKeys(node, { env_id }, cause)
    const project = idOf(command.project)
    switch (command.op) {
      case 'create': {
        const { key, value, request } = command
        await createVariable(node, { project, key, value, description: request }, ids.caller(env_id, request))
        return
      }
      case 'update': {
        const { key, value, text } = command
        await updateVariable(node, { project, key, value, description: text ?? undefined }, cause)
        return
      }
      case 'delete':
        return deleteVariable(node, { project, key: command.key }, cause)
      case 'read':
        return read(node, command.project, command.key)
      case 'deleteProject':
        return deleteProject(node, { project }, ids.caller(env_id, 'other'))
      default:
        return command satisfies never
    }
  }

  const observe = async (node: ModelNode): Promise<unknown> => {
    await node.views.settled()
    const seen: Record<string, unknown> = {}
    for (const name of Object.keys(context.initial)) {
      const query = { equal: { project_id: idOf(name) }, sort: 'order', limit: 100, offset: 0 } as const
      const { items } = await node.views.contextVariables.find(query)
      const variables: Record<string, unknown> = {}
      for (const { key, description } of items)
        variables[key] = { value: await read(node, name, key).catch(erasedAsNull), text: description }
      seen[name] = (await node.views.projects.get(idOf(name))) ? variables : null
    }
    return seen
  }

  return { perform, observe }
}

const erasedAsNull = (error: unknown): null => {
  if (isAppError(error, 'not_found')) return null
  throw error
}
