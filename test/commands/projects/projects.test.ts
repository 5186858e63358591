import * as assert from 'uvu/assert'
import { createProject } from '../../../src/commands/projects/createProject.ts'
import { deleteProject } from '../../../src/commands/projects/deleteProject.ts'
import { renameProject } from '../../../src/commands/projects/renameProject.ts'
import { STALE_MS } from '../../../src/commands/projects/reserveName.ts'
import { clock } from '../../../src/clock.ts'
import { streamOf } from '../../../src/events/streams.ts'
import { derivedIdBeside, newId } from '../../../src/ids.ts'
import { suite } from '../../support/suite.ts'
import { callerOf, openCommands } from '../openCommands.ts'
import { refusedWith } from '../refusedWith.ts'

const node = await openCommands()
const { deps } = node
const env_id = newId()
const caller = callerOf(env_id)
const create = (name: string, as = caller) => createProject(deps, { name }, as)
const typesIn = async (stream: string) =>
  (await Array.fromAsync(node.store.read(stream))).map(({ event }) => event.type)
/** A name reserved by a node that went no further, `ms` ago. */
const reservedAgo = async (name: string, ms: number): Promise<void> => {
  const time = (clock.now() - ms).toString(16).padStart(12, '0')
  const holder = `${time.slice(0, 8)}-${time.slice(8)}${newId().slice(13)}`
  const command = { type: 'ReserveName', name, holder, taken: 'project_exists' } as const
  await node.aggregates.names.handle(streamOf.projectName(env_id, name), command, caller.cause)
}

const creating = suite('creating a project')

creating('reserves its name: another one of that name is refused', async () => {
  const { project_id, name } = await create('shop')
  assert.is(name, 'shop')
  assert.equal(await typesIn(streamOf.project(project_id)), ['ProjectCreated'])
  await refusedWith('project_exists', () => create('shop'))
})

creating('gives a name to one of those that ask at once', async () => {
  const results = await Promise.allSettled([1, 2, 3, 4].map(() => create('race')))
  assert.is(results.filter(({ status }) => status === 'fulfilled').length, 1)
})

creating('gives the same name in another environment', async () => {
  await create('both')
  assert.is((await create('both', callerOf(newId()))).name, 'both')
})

creating('twice with the same ids creates one project', async () => {
  const key = newId()
  const again = { ...caller, newId: (what: string) => derivedIdBeside(key, what) }
  const [first, second] = [await create('once', again), await create('once', again)]
  assert.equal(second, first)
  assert.equal(await typesIn(streamOf.project(first.project_id)), ['ProjectCreated'])
})

creating('refuses a name that breaks the rules, and reserves nothing', async () => {
  for (const name of ['', '-a', 'a b', 'a/b', 'ü', 'a'.repeat(64)]) {
    await refusedWith('bad_request', () => create(name))
    assert.equal(await typesIn(streamOf.projectName(env_id, name)), [])
  }
})

creating('takes over a name whose node died before it created the project', async () => {
  await reservedAgo('left', STALE_MS + 1000)
  assert.is((await create('left')).name, 'left')
})

creating('does not take over a name whose project another node may still create', async () => {
  await reservedAgo('fresh', 0)
  await refusedWith('project_exists', () => create('fresh'))
})

creating('takes over a name that its deleted project did not release', async () => {
  const { project_id } = await create('unreleased')
  const stream = streamOf.project(project_id)
  await node.aggregates.projects.handle(stream, { type: 'DeleteProject', project_id }, caller.cause)
  assert.is.not((await create('unreleased')).project_id, project_id)
})

creating.run()

const renaming = suite('renaming a project')

renaming('makes its old name available', async () => {
  const { project_id } = await create('old')
  const renamed = await renameProject(deps, { project: 'old', name: 'new' }, caller)
  assert.equal([renamed.project_id, renamed.name], [project_id, 'new'])
  await create('old')
})

renaming('to its own name stores nothing', async () => {
  const { project_id } = await create('same')
  const before = await node.store.head()
  await renameProject(deps, { project: project_id, name: 'same' }, caller)
  assert.is(await node.store.head(), before)
})

renaming('to a name that is taken is refused, and changes nothing', async () => {
  await create('mine')
  await create('yours')
  await refusedWith('project_exists', () => renameProject(deps, { project: 'mine', name: 'yours' }, caller))
  assert.is(node.views.directory.project(env_id, 'mine')?.name, 'mine')
})

renaming('refuses a project of another environment as if it did not exist (I7)', async () => {
  const { project_id } = await create('theirs')
  for (const project of [project_id, 'theirs', newId()])
    await refusedWith('not_found', () => renameProject(deps, { project, name: 'x' }, callerOf(newId())))
})

renaming.run()

const deleting = suite('deleting a project')

deleting('makes its name available, and happens once', async () => {
  const { project_id } = await create('doomed')
  await deleteProject(deps, { project: 'doomed' }, caller)
  await refusedWith('not_found', () => deleteProject(deps, { project: project_id }, caller))
  assert.is.not((await create('doomed')).project_id, project_id)
})

deleting('closes its context variables before the project is deleted', async () => {
  const { project_id } = await create('closed')
  await deleteProject(deps, { project: project_id }, caller)
  assert.equal(await typesIn(streamOf.context(project_id)), ['ContextClosed'])
})

deleting.after(() => node.close())
deleting.run()
