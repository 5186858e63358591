import * as assert from 'uvu/assert'
import type { Recorded } from '../../src/events/event.ts'
import type { DomainEvent } from '../../src/events/index.ts'
import { orderOf, type Projection } from '../../src/projections/projection.ts'
import { Projector } from '../../src/projections/projector.ts'
import { type NameDoc, names, newEvents, projecting, withWriter } from './projectedNames.ts'

/** The names of projects, all of which the end of an environment removes. */
type NamedDoc = NameDoc & { readonly all: true; readonly id: string }
const named: Projection<NamedDoc> = {
  name: names.name,
  version: names.version,
  indexes: [{ equal: ['all'], sort: 'order', counted: true }],
  handles: ['ProjectCreated', 'ProjectRenamed', 'EnvPurged'],
  begins: ({ event }) => event.type === 'ProjectCreated',
  idsOf: names.idsOf,
  evolve(doc, recorded, id) {
    const { event } = recorded
    if (event.type === 'ProjectCreated')
      return { id, all: true, name: event.name, renamed: 0, order: orderOf(recorded) }
    return event.type === 'ProjectRenamed' ? doc && { ...doc, renamed: doc.renamed + 1 } : null
  },
  clears: ({ event }) =>
    event.type === 'EnvPurged' ? [{ equal: { all: true }, sort: 'order', id: ({ id }) => id }] : [],
}
const spec = named as unknown as Projection

const created = (project_id: string): DomainEvent => ({
  type: 'ProjectCreated',
  project_id,
  name: project_id,
})
const renamed = (project_id: string): DomainEvent => ({ type: 'ProjectRenamed', project_id, name: 'other' })
const purged: DomainEvent = { type: 'EnvPurged', env_id: 'env', final: false }

const projector = projecting('a projector whose documents are cleared')

projector('removes those of earlier events only, in one batch and in several (P6)', async (context) => {
  const { store, readModels, run } = context
  const many = Array.from({ length: 250 }, (_, i) => created(`old-${i}`))
  await store.append('a', newEvents([...many, purged, created('new'), renamed('old-1')]), 'none')
  const projector = new Projector(spec, { readModels, store })
  void run(projector)
  await projector.reach(await store.head())
  const idsIn = async () =>
    (await Array.fromAsync(readModels.reader<NamedDoc>(named).scan())).map(({ id }) => id).sort()
  assert.equal(await idsIn(), ['new'])
  await store.append('b', newEvents([created('next')]), 'none')
  await store.append('c', newEvents([purged]), 'none')
  await store.append('d', newEvents([renamed('new'), created('last')]), 'none')
  await projector.reach(await store.head())
  assert.equal(await idsIn(), ['last'])
  const { total } = await readModels
    .reader<NamedDoc>(named)
    .find({ equal: { all: true }, sort: 'order', limit: 1, offset: 0 })
  assert.is(total, 1)
})

projector('keeps what another projector, which is ahead, folded after the clearing (P4)', async (context) => {
  const { store, readModels, run } = context
  await store.append('a', newEvents([created('old'), purged, created('new')]), 'none')
  const ahead = new Projector(spec, { readModels, store })
  void run(ahead)
  await ahead.reach(await store.head())
  const writer = await readModels.writer<NamedDoc>(named)
  const behind = new Projector(spec, {
    store,
    readModels: {
      ...readModels,
      writer: async () => ({ ...writer, checkpoint: async () => '' }) as never,
      goLive: async () => {},
    } as typeof readModels,
  })
  void run(behind)
  await behind.reach(await store.head())
  const ids = (await Array.fromAsync(readModels.reader<NamedDoc>(named).scan())).map(({ id }) => id)
  assert.equal(ids, ['new'])
})
projector(
  'does not remove later what another projector, which is ahead, kept at the clearing',
  async (context) => {
    const { store, readModels, run } = context
    const keeping = {
      ...named,
      clears: (recorded: Recorded) =>
        (named.clears?.(recorded) ?? []).map((each) => ({
          ...each,
          keeps: (doc: NamedDoc) => doc.renamed === 0,
        })),
    } as unknown as Projection
    await store.append('a', newEvents([created('kept'), purged, renamed('kept')]), 'none')
    const ahead = new Projector(keeping, { readModels, store })
    void run(ahead)
    await ahead.reach(await store.head())
    const removals: string[] = []
    const behind = withWriter(readModels, ({ write }) => ({
      checkpoint: async () => '',
      write: (writes, checkpoint, options) => {
        for (const { doc, cursor } of writes) if (doc === null) removals.push(cursor)
        return write(writes, checkpoint, options)
      },
    }))
    const lagging = new Projector(keeping, { readModels: behind, store })
    void run(lagging)
    const head = await store.head()
    await lagging.reach(head)
    assert.not(removals.includes(head), 'the removal has the position of the later fact, and may win')
    assert.is((await readModels.reader<NamedDoc>(named).get('kept'))?.renamed, 1)
  },
)
projector.run()
