import * as assert from 'uvu/assert'
import type { DomainEvent } from '../../src/events/index.ts'
import { builds } from '../../src/projections/builds.ts'
import { contextVariables } from '../../src/projections/contextVariables.ts'
import { projects } from '../../src/projections/projects.ts'
import { deployed, uploaded } from '../support/buildFacts.ts'
import { suite } from '../support/suite.ts'
import { at, docsAfter, order } from './recorded.ts'

const project = suite('the document of a project')
const created: DomainEvent = { type: 'ProjectCreated', project_id: 'p', name: 'shop' }
const projectDoc = {
  project_id: 'p',
  env_id: 'env',
  name: 'shop',
  network: null,
  pauses: [],
  active: true,
  created_at: at(0),
  updated_at: at(0),
  order: order(0),
}
project('is made', () => assert.equal(docsAfter(projects, [created]), { p: projectDoc }))
project('is renamed, and keeps its place', () =>
  assert.equal(docsAfter(projects, [created, { type: 'ProjectRenamed', project_id: 'p', name: 'store' }]), {
    p: { ...projectDoc, name: 'store', updated_at: at(1) },
  }),
)
project('has the network that was set last', () => {
  const network = ['api.example.com']
  assert.equal(docsAfter(projects, [{ ...created, network }]), { p: { ...projectDoc, network } })
  const changed: DomainEvent = { type: 'ProjectNetworkChanged', project_id: 'p', network }
  assert.equal(docsAfter(projects, [created, changed]), { p: { ...projectDoc, network, updated_at: at(1) } })
})
project('has the last pause of each schedule, and a pause does not change the project itself', () => {
  const name = { project_id: 'p', ns: 'jobs', var: 'nightly' }
  const paused: DomainEvent = { type: 'SchedulePaused', ...name }
  const resumed: DomainEvent = { type: 'ScheduleResumed', ...name }
  const other: DomainEvent = { ...paused, var: 'other' }
  const pausesAfter = (...facts: DomainEvent[]) => docsAfter(projects, [created, ...facts])['p']?.['pauses']
  const nightly = { ns: 'jobs', var: 'nightly', paused_at: at(1), resumed_at: null }
  assert.equal(docsAfter(projects, [created, paused]), { p: { ...projectDoc, pauses: [nightly] } })
  assert.equal(pausesAfter(paused, resumed), [{ ...nightly, resumed_at: at(2) }])
  assert.equal(pausesAfter(paused, resumed, other, paused), [
    { ...nightly, paused_at: at(4) },
    { ...nightly, var: 'other', paused_at: at(3) },
  ])
})
project('is gone', () =>
  assert.equal(
    docsAfter(projects, [created, { type: 'ProjectDeleted', project_id: 'p', build_ids: [] }]),
    {},
  ),
)
project.run()

const build = suite('the document of a build')
const buildDoc = (build_id: string, n: number) => {
  const { type: _, ...rest } = uploaded(build_id)
  return {
    ...rest,
    env_id: 'env',
    deployed: false,
    active: true,
    created_at: at(n),
    updated_at: at(n),
    order: order(n),
  }
}
build('is made', () => assert.equal(docsAfter(builds, [uploaded('a')]), { 'p/a': buildDoc('a', 0) }))
build('is deployed', () =>
  assert.equal(docsAfter(builds, [uploaded('a'), deployed('a')]), {
    'p/a': { ...buildDoc('a', 0), deployed: true, updated_at: at(1) },
  }),
)
build('is replaced by the next one', () =>
  assert.equal(docsAfter(builds, [uploaded('a'), uploaded('b'), deployed('a'), deployed('b', 'a')]), {
    'p/a': { ...buildDoc('a', 0), updated_at: at(3) },
    'p/b': { ...buildDoc('b', 1), deployed: true, updated_at: at(3) },
  }),
)
build('of another project with the same build_id is another document', () => {
  const elsewhere = { ...uploaded('a'), project_id: 'q' }
  const deployedThere: DomainEvent = { ...elsewhere, type: 'BuildDeployed' }
  const gone: DomainEvent = { type: 'ProjectDeleted', project_id: 'q', build_ids: ['a'] }
  assert.equal(Object.keys(docsAfter(builds, [uploaded('a'), elsewhere])), ['p/a', 'q/a'])
  assert.equal(docsAfter(builds, [uploaded('a'), elsewhere, deployedThere, gone]), {
    'p/a': buildDoc('a', 0),
  })
})
build('is gone with its project', () =>
  assert.equal(
    docsAfter(builds, [
      uploaded('a'),
      uploaded('b'),
      { type: 'ProjectDeleted', project_id: 'p', build_ids: ['a'] },
    ]),
    {
      'p/b': buildDoc('b', 1),
    },
  ),
)
build.run()

const variable = suite('the document of a context variable')
const named = { project_id: 'p', key: 'KEY' }
const variableCreated: DomainEvent = {
  type: 'ContextVariableCreated',
  variable_id: 'v',
  ...named,
  description: 'one',
  sealed: '2.k.x',
}
const variableDoc = {
  ...named,
  description: 'one',
  created_at: at(0),
  updated_at: at(0),
  order: order(0),
}
variable('is made, without the value', () =>
  assert.equal(docsAfter(contextVariables, [variableCreated]), { 'p/KEY': variableDoc }),
)
variable('is updated, and keeps its place', () =>
  assert.equal(
    docsAfter(contextVariables, [
      variableCreated,
      { type: 'ContextVariableUpdated', ...named, description: 'two', sealed: '2.k.y' },
    ]),
    { 'p/KEY': { ...variableDoc, description: 'two', updated_at: at(1) } },
  ),
)
variable('stays unchanged when it is sealed again', () =>
  assert.equal(
    docsAfter(contextVariables, [
      variableCreated,
      { type: 'ContextVariableResealed', ...named, sealed: '2.l.x' },
    ]),
    { 'p/KEY': variableDoc },
  ),
)
variable('is gone, alone or with its project', () => {
  assert.equal(
    docsAfter(contextVariables, [variableCreated, { type: 'ContextVariableDeleted', ...named }]),
    {},
  )
  const other: DomainEvent = { ...variableCreated, project_id: 'q' }
  assert.equal(
    docsAfter(contextVariables, [
      variableCreated,
      other,
      { type: 'ContextClosed', project_id: 'p', keys: ['KEY'] },
    ]),
    { 'q/KEY': { ...variableDoc, project_id: 'q', created_at: at(1), updated_at: at(1), order: order(1) } },
  )
})
variable.run()
