import * as assert from 'uvu/assert'
import { createProject } from '../../../src/commands/projects/createProject.ts'
import { deleteProject } from '../../../src/commands/projects/deleteProject.ts'
import { updateProject } from '../../../src/commands/projects/updateProject.ts'
import { STALE_MS } from '../../../src/commands/projects/reserveName.ts'
import { clock } from '../../../src/clock.ts'
import { openAggregates } from '../../../src/domain/aggregates.ts'
import { AppError } from '../../../src/errors.ts'
import type { EventType } from '../../../src/events/index.ts'
import { streamOf } from '../../../src/events/streams.ts'
import { derivedIdBeside, newId } from '../../../src/ids.ts'
import { suite } from '../../support/suite.ts'
import { callerOf, openCommands } from '../openCommands.ts'
import { refusedWith } from '../refusedWith.ts'

const node = await openCommands()
const { deps } = node
/** A second node on the same log: what the first has in memory, it has not. */
const elsewhere = { ...deps, aggregates: openAggregates(node.store) }
/** A node that dies when it has stored a fact of the type, or, for `before`, when it is about to store one. */
const dyingAt = (when: 'before' | 'after', type: EventType) => {
  let dead = false
  const store = new Proxy(node.store, {
    get(target, key) {
      if (key !== 'append') {
        const value: unknown = Reflect.get(target, key)
        return typeof value === 'function' ? value.bind(target) : value
      }
      return async (...[stream, events, expected]: Parameters<typeof target.append>) => {
        const isIt = events.some(({ event }) => event.type === type)
        dead ||= isIt && when === 'before'
        if (dead) throw new AppError('unavailable', 'The node is dead')
        const appended = await target.append(stream, events, expected)
        dead = isIt
        if (dead) throw new AppError('unavailable', 'The node is dead')
        return appended
      }
    },
  })
  return { ...deps, aggregates: openAggregates(store) }
}
const env_id = newId()
const caller = callerOf(env_id)
const create = (name: string, as = caller) => createProject(deps, { name }, as)
const typesIn = async (stream: string) =>
  (await Array.fromAsync(node.store.read(stream))).map(({ event }) => event.type)
/** An id of a project whose creation began `ms` ago. */
const slowId = (ms = STALE_MS + 1000): string => {
  const time = (clock.now() - ms).toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}${newId().slice(13)}`
}
/** A name reserved by a node that went no further, `ms` ago. */
const reservedAgo = async (name: string, ms: number): Promise<void> => {
  const holder = slowId(ms)
  const command = { type: 'ReserveName', name, by: { holder }, taken: 'project_exists' } as const
  await node.aggregates.names.handle(streamOf.projectName(env_id, name), command, caller.cause)
}

const creating = suite('creating a project')

creating('reserves its name: another one of that name is refused', async () => {
  const { project_id, name } = await create('shop')
  assert.is(name, 'shop')
  assert.equal(await typesIn(streamOf.project(project_id)), ['ProjectCreated'])
  await refusedWith('project_exists', () => create('shop'))
})

creating('gives a name to one of several simultaneous callers', async () => {
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

creating('takes over a name whose node died while its clock was ahead', async () => {
  await reservedAgo('ahead', -400 * 24 * 3_600_000)
  assert.is((await create('ahead')).name, 'ahead')
  await reservedAgo('skewed', -60_000)
  await refusedWith('project_exists', () => create('skewed'))
})

creating('does not take over a name whose project another node may still create', async () => {
  await reservedAgo('fresh', 0)
  await refusedWith('project_exists', () => create('fresh'))
})

creating('has no effect after another project took the name over from its slow node', async () => {
  const [ids, fence] = [callerOf(env_id), -1]
  const project_id = slowId()
  const slow = { ...ids, newId: () => project_id }
  const by = { holder: project_id, fence, reserved_at: new Date(clock.now() - STALE_MS - 1000).toISOString() }
  const reserve = { type: 'ReserveName', name: 'slowly', by, taken: 'project_exists' } as const
  await node.aggregates.names.handle(streamOf.projectName(env_id, 'slowly'), reserve, caller.cause)
  const { project_id: taker } = await create('slowly')
  const command = { type: 'CreateProject', project_id, name: 'slowly', fence } as const
  await refusedWith('conflict', () =>
    elsewhere.aggregates.projects.handle(streamOf.project(project_id), command, caller.cause),
  )
  await refusedWith('project_exists', () => createProject(elsewhere, { name: 'slowly' }, slow))
  await node.views.settled()
  assert.is(node.views.directory.project(env_id, 'slowly')?.project_id, taker)
  assert.equal(await typesIn(streamOf.project(project_id)), ['CreationAbandoned'])
})

creating('that lost its name can be repeated with another name', async () => {
  const project_id = slowId()
  const slow = { ...callerOf(env_id), newId: () => project_id }
  await node.aggregates.projects.handle(
    streamOf.project(project_id),
    { type: 'AbandonCreation', project_id, fence: -1 },
    caller.cause,
  )
  assert.is((await createProject(deps, { name: 'another' }, slow)).project_id, project_id)
})

creating('repeated after a rename changes nothing', async () => {
  const key = newId()
  const again = { ...caller, newId: (what: string) => derivedIdBeside(key, what) }
  const { project_id } = await create('before-rename', again)
  await updateProject(deps, { project: project_id, name: 'after-rename' }, caller)
  assert.is((await create('before-rename', again)).name, 'after-rename')
  assert.is.not((await create('before-rename')).project_id, project_id)
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
  const renamed = await updateProject(deps, { project: 'old', name: 'new' }, caller)
  assert.equal([renamed.project_id, renamed.name], [project_id, 'new'])
  await create('old')
})

renaming('to its own name stores nothing', async () => {
  const { project_id } = await create('same')
  const before = await node.store.head()
  await updateProject(deps, { project: project_id, name: 'same' }, caller)
  assert.is(await node.store.head(), before)
})

renaming('to a name that is taken is refused, and changes nothing', async () => {
  await create('mine')
  await create('yours')
  await refusedWith('project_exists', () => updateProject(deps, { project: 'mine', name: 'yours' }, caller))
  assert.is(node.views.directory.project(env_id, 'mine')?.name, 'mine')
})

renaming('with a new network changes both or neither', async () => {
  const { project_id } = await create('hosts')
  const change = (on: typeof deps) =>
    updateProject(on, { project: project_id, name: 'other-hosts', network: ['a.example'] }, caller)
  await refusedWith('unavailable', () => change(dyingAt('before', 'ProjectNetworkChanged')))
  const unchanged = await updateProject(deps, { project: project_id, name: 'hosts' }, caller)
  assert.equal([unchanged.name, unchanged.network], ['hosts', null])
  const changed = await change(deps)
  assert.equal([changed.name, changed.network], ['other-hosts', ['a.example']])
  assert.equal(
    (await updateProject(deps, { project: 'other-hosts', name: 'other-hosts', network: null }, caller))
      .network,
    null,
  )
})

renaming('refuses a project of another environment as if it did not exist (I7)', async () => {
  const { project_id } = await create('theirs')
  for (const project of [project_id, 'theirs', newId()])
    await refusedWith('not_found', () => updateProject(deps, { project, name: 'x' }, callerOf(newId())))
})

for (const [where, nodes] of [
  ['one node', [deps]],
  ['several nodes', [deps, elsewhere]],
] as const)
  renaming(`several times at once on ${where} keeps one of the names`, async () => {
    const names = [1, 2, 3].map((n) => `${where.replace(' ', '-')}-${n}`)
    const { project_id } = await create(`${names[0]}-before`)
    await Promise.all(
      names.map((name, i) =>
        updateProject(nodes[i % nodes.length] ?? deps, { project: project_id, name }, caller),
      ),
    )
    await node.views.settled()
    const kept = node.views.directory.project(env_id, project_id)?.name ?? 'none'
    assert.ok(names.includes(kept), kept)
    for (const name of [`${names[0]}-before`, ...names])
      if (name === kept) await refusedWith('project_exists', () => create(name))
      else await create(name)
  })

renaming('back and forth at once keeps its name for itself', async () => {
  const { project_id } = await create('forth')
  for (const round of [0, 1, 2, 3, 4, 5]) {
    await Promise.all(
      ['back', 'forth', 'back', 'forth'].map((name, i) =>
        updateProject(i % 2 ? deps : elsewhere, { project: project_id, name }, caller),
      ),
    )
    await node.views.settled()
    const name = node.views.directory.project(env_id, project_id)?.name ?? 'none'
    await refusedWith('project_exists', () => create(name)).catch((error: unknown) => {
      throw new Error(`round ${round}: ${name}`, { cause: error })
    })
  }
})

renaming('several projects to one name at once gives it to one of them', async () => {
  const rivals = await Promise.all([1, 2, 3, 4].map((n) => create(`rival-${n}`)))
  const results = await Promise.allSettled(
    rivals.map(({ project_id }, i) =>
      updateProject(i % 2 ? deps : elsewhere, { project: project_id, name: 'wanted' }, caller),
    ),
  )
  assert.is(results.filter(({ status }) => status === 'fulfilled').length, 1)
})

renaming('can be repeated when it stopped after the new name was reserved', async () => {
  const { project_id } = await create('half')
  const rename = (on: typeof deps) => updateProject(on, { project: project_id, name: 'whole' }, caller)
  await refusedWith('unavailable', () => rename(dyingAt('before', 'ProjectRenamed')))
  await refusedWith('project_exists', () => create('half'))
  assert.is((await rename(elsewhere)).name, 'whole')
  await create('half')
})

renaming('to another name makes the name of a rename that stopped available', async () => {
  const { project_id } = await create('undecided')
  const rename = (name: string, on = deps) => updateProject(on, { project: project_id, name }, caller)
  await refusedWith('unavailable', () => rename('first', dyingAt('before', 'ProjectRenamed')))
  await rename('second')
  await create('first')
})

renaming('makes its old name available, also when the node dies right after it', async () => {
  const { project_id } = await create('lost')
  const rename = (on: typeof deps) => updateProject(on, { project: project_id, name: 'found' }, caller)
  await refusedWith('unavailable', () => rename(dyingAt('after', 'ProjectRenamed')))
  assert.is((await rename(elsewhere)).name, 'found')
  await create('lost')
})

/** Reserves a name for a rename as a node does that dies before the rename takes effect; resolves with the fence. */
const renamedAgo = async (name: string, project_id: string, ms: number): Promise<number> => {
  const fence = await node.aggregates.projects.read(streamOf.project(project_id), (state) =>
    state.status === 'active' ? state.nameFence : -1,
  )
  const by = { holder: project_id, fence, reserved_at: new Date(clock.now() - ms).toISOString() }
  const command = { type: 'ReserveName', name, by, taken: 'project_exists' } as const
  await node.aggregates.names.handle(streamOf.projectName(env_id, name), command, caller.cause)
  return fence
}

renaming('reserves the new name as long as it may take effect', async () => {
  const { project_id } = await create('renames')
  await renamedAgo('pending', project_id, 0)
  await refusedWith('project_exists', () => create('pending'))
})

renaming('has no effect after another project took the new name over from its slow node', async () => {
  const { project_id } = await create('slow')
  const stream = streamOf.project(project_id)
  const fence = await renamedAgo('stale', project_id, STALE_MS + 1000)
  const taker = await create('stale')
  assert.equal(await typesIn(stream), ['ProjectCreated', 'RenameAbandoned'])
  const command = { type: 'RenameProject', project_id, name: 'stale', fence } as const
  await refusedWith('conflict', () => elsewhere.aggregates.projects.handle(stream, command, caller.cause))
  await refusedWith('project_exists', () =>
    updateProject(elsewhere, { project: project_id, name: 'stale' }, caller),
  )
  assert.is(node.views.directory.project(env_id, 'stale')?.project_id, taker.project_id)
})

renaming('makes a name available that version 0.1.0 leaked', async () => {
  const { project_id } = await create('of-0-1-0')
  const command = {
    type: 'ReserveName',
    name: 'leaked',
    by: { holder: project_id },
    taken: 'project_exists',
  } as const
  await node.aggregates.names.handle(streamOf.projectName(env_id, 'leaked'), command, caller.cause)
  await create('leaked')
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
