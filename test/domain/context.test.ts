import { context } from '../../src/domain/context.ts'
import type { EventOf } from '../../src/events/index.ts'
import { given as givenOf } from '../support/given.ts'
import { suite } from '../support/suite.ts'

const given = givenOf(context, { env_id: 'env', correlation_id: 'c' })
const named = { project_id: 'p', key: 'KEY' }
const created: EventOf<'ContextVariableCreated'> = {
  type: 'ContextVariableCreated',
  variable_id: 'v',
  ...named,
  description: 'one',
  sealed: '2.k.a',
}
const updated: EventOf<'ContextVariableUpdated'> = {
  type: 'ContextVariableUpdated',
  ...named,
  description: 'two',
  sealed: '2.k.b',
}
const resealed: EventOf<'ContextVariableResealed'> = {
  type: 'ContextVariableResealed',
  ...named,
  sealed: '2.l.b',
}
const deleted: EventOf<'ContextVariableDeleted'> = { type: 'ContextVariableDeleted', ...named }
const closed = (...keys: string[]): EventOf<'ContextClosed'> => ({
  type: 'ContextClosed',
  project_id: 'p',
  keys,
})

const create = {
  type: 'CreateVariable',
  variable_id: 'v',
  ...named,
  description: 'one',
  sealed: '2.k.a',
} as const
const update = { type: 'UpdateVariable', ...named, description: 'two', sealed: '2.k.b' } as const
const remove = { type: 'DeleteVariable', ...named } as const
const reseal = (revision: number) =>
  ({ type: 'ResealVariable', ...named, sealed: '2.l.b', revision }) as const
const close = { type: 'CloseContext', project_id: 'p' } as const

const variables = suite('a context variable')
variables('is created', () => given().when(create).then(created))
variables('is created once, however often it is requested', () => {
  const other = { ...create, variable_id: 'w' }
  given(created).when(create).then()
  given(created, updated, resealed).when(create).then()
  given(created).when(other).refuses('context_exists')
  given(created, updated).when(other).refuses('context_exists')
})
variables('is another variable under another key', () =>
  given(created)
    .when({ ...create, variable_id: 'w', key: 'OTHER' })
    .then({ ...created, variable_id: 'w', key: 'OTHER' }),
)
variables('is updated', () => given(created).when(update).then(updated))
variables('keeps its description when none is given', () => {
  const { description: _, ...bare } = update
  given(created)
    .when(bare)
    .then({ ...updated, description: 'one' })
  given(created, updated, resealed).when(bare).then(updated)
})
variables('that is not there is neither updated nor deleted', () => {
  given().when(update).refuses('not_found')
  given().when(remove).refuses('not_found')
  given(created, deleted).when(update).refuses('not_found')
})
variables('is deleted, and its key is free', () => {
  given(created).when(remove).then(deleted)
  given(created, deleted).when(create).then(created)
})
variables('is sealed again at the revision that was read', () =>
  given(created, updated).when(reseal(1)).then(resealed),
)
variables('that changed meanwhile is not sealed again', () => {
  given(created, updated).when(reseal(0)).then()
  given(created, deleted).when(reseal(0)).then()
})
variables('is deleted permanently with its project', () => {
  given(created).when(close).then(closed('KEY'))
  given().when(close).then(closed())
  given(created, closed('KEY')).when(close).then()
  for (const command of [create, update, remove, reseal(0)])
    given(created, closed('KEY')).when(command).refuses('not_found')
})
variables.run()
