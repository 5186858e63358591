import * as assert from 'uvu/assert'
import { openEventStore } from '../../src/adapters/embedded/eventStore/index.ts'
import { openReadModels } from '../../src/adapters/embedded/readModels/index.ts'
import { openMongoReadModels } from '../../src/adapters/mongodb/index.ts'
import { holdLease } from '../../src/cluster/lease.ts'
import { Liveness } from '../../src/cluster/liveness.ts'
import { namesReadBy } from '../../src/cluster/namesRead.ts'
import { newId } from '../../src/ids.ts'
import { silent } from '../../src/logger.ts'
import { keepGoing } from '../../src/loops/keepGoing.ts'
import type { EventStore } from '../../src/ports/eventStore.ts'
import type { ReadModels } from '../../src/ports/readModels.ts'
import { dropUnread } from '../../src/projections/dropUnread.ts'
import { nameOf, type Projection } from '../../src/projections/projection.ts'
import { Projectors } from '../../src/projections/projectors.ts'
import { rebuildRequested } from '../../src/projections/rebuilding.ts'
import { type RebuildDoc, Rebuilds, rebuilds } from '../../src/projections/rebuilds.ts'
import { any, life, newEvents } from '../projections/projectedNames.ts'
import { engineUrl, namedUrl } from '../support/engines.ts'
import { realEngines } from '../support/installation.ts'
import { suite, type Suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

interface Context {
  readonly store: EventStore
  readonly readModels: ReadModels
}

/** The same read model in two builds. */
const earlier: Projection = { ...any, name: 'runs', version: 2 }
const later: Projection = { ...any, name: 'runs', version: 3 }

/** A version is dropped after so many looks that found no reader. */
const LOOKS = 3

/** A node with the role projector, of the build that has this projection. The others know it. */
const openNode = async ({ store, readModels }: Context, projection: Projection) => {
  const [node_id, liveness] = [newId(), new Liveness(readModels)]
  const [beating, working] = [new AbortController(), new AbortController()]
  const joined = liveness.join(node_id, { announced: { reads: [nameOf(projection)] } })
  const beats = liveness.run(beating.signal).catch(() => {}) // the engines close first if a test fails
  await joined
  const projectors = new Projectors({ store, readModels, logger: silent, projections: [projection] })
  const projecting = projectors.run(working.signal)
  const unread = {
    readModels,
    projectors,
    namesRead: () => namesReadBy({ readModels, liveness }),
    looks: LOOKS,
    lookMs: 20,
  }
  const background = { signal: working.signal, logger: silent }
  const dropping = keepGoing('Dropping', (until) => dropUnread(unread, until), background)
  const rebuilding: Promise<void>[] = []
  const end = async () => {
    beating.abort()
    working.abort()
    await Promise.all([beats, projecting, dropping, ...rebuilding])
  }
  return {
    projectors,
    rebuilds() {
      const { namesRead } = unread
      const own = { readModels, store, projectors, namesRead, onSkipped: () => {}, lookMs: 20 }
      rebuilding.push(
        keepGoing('Rebuilding', (until) => rebuildRequested({ ...own, logger: silent }, until), background),
      )
    },
    reads: () => readModels.reader(projection),
    /** As kill -9 of its process. */
    kill: end,
    async stop() {
      await end()
      await liveness.leave()
    },
  }
}

const isStored = async ({ readModels }: Context, { name, version }: Projection): Promise<boolean> =>
  (await readModels.versions()).some((stored) => stored.name === name && stored.version === version)

/** Waits until the projector of a build has looked for unread versions as often as it takes to drop one. This is less time than a silent node has until it counts as dead. */
const someLooks = async ({ readModels }: Context): Promise<void> => {
  let looks = 0
  const versions = readModels.versions.bind(readModels)
  readModels.versions = () => {
    looks++
    return versions()
  }
  await until(() => looks > LOOKS + 1) // the first may have begun before
  readModels.versions = versions
}

const rules = (upgrades: Suite<Context>): void => {
  upgrades('an earlier version answers and stays up to date while its node lives', async (context) => {
    const { store } = context
    const old = await openNode(context, earlier)
    const first = await store.append('p', newEvents(life('p', 1)), 'none')
    await old.projectors.reach(nameOf(earlier), first.cursor)
    const next = await openNode(context, later)
    await next.projectors.reach(nameOf(later), first.cursor)
    await someLooks(context)
    const { cursor } = await store.append('q', newEvents(life('q', 2)), 'none')
    for (const node of [old, next]) {
      await node.projectors.reach(nameOf(node === old ? earlier : later), cursor)
      assert.equal((await node.reads().get('q'))?.['renamed'], 2)
      assert.equal((await node.reads().get('p'))?.['renamed'], 1)
    }
    await old.stop()
    await next.stop()
  })

  upgrades('it is dropped after its last node has left', async (context) => {
    const nodes = [await openNode(context, earlier), await openNode(context, earlier)]
    const next = await openNode(context, later)
    await until(() => nodes.every(({ projectors }) => projectors.building.length === 0))
    await until(() => next.projectors.building.length === 0)
    await nodes[0]?.stop()
    await someLooks(context)
    assert.ok(await isStored(context, earlier))
    await nodes[1]?.stop()
    await until(async () => !(await isStored(context, earlier)))
    assert.ok(await isStored(context, later))
    await next.stop()
  })

  upgrades('the claim of a killed node ends with its heartbeats', async (context) => {
    const killed = await openNode(context, earlier)
    await until(() => killed.projectors.building.length === 0)
    const next = await openNode(context, later)
    await until(() => next.projectors.building.length === 0)
    await killed.kill()
    await someLooks(context)
    assert.ok(await isStored(context, earlier), 'a node that is silent for a moment may only be slow')
    await until(async () => !(await isStored(context, earlier)), { timeoutMs: 30_000 })
    await next.stop()
  })

  upgrades('a later version is left to later builds', async (context) => {
    const next = await openNode(context, later)
    await until(() => next.projectors.building.length === 0)
    await next.stop()
    const old = await openNode(context, earlier)
    await until(() => old.projectors.building.length === 0)
    await someLooks(context)
    assert.ok(await isStored(context, later))
    await old.stop()
  })

  upgrades('a rebuild is left to the build that has the read model', async (context) => {
    const { store, readModels } = context
    await store.append('p', newEvents(life('p', 1)), 'none')
    const [old, next] = [await openNode(context, earlier), await openNode(context, later)]
    await until(() => [old, next].every(({ projectors }) => projectors.building.length === 0))
    const requests = await Rebuilds.open(readModels)
    const ended = (projection: Projection) =>
      until(async () => {
        const doc = await readModels.reader<RebuildDoc>(rebuilds).get(nameOf(projection))
        return doc?.ended_at ? doc.state : undefined
      })
    for (const each of [later, earlier]) await requests.request(nameOf(each), { verify: false })
    old.rebuilds()
    assert.is(await ended(earlier), 'done')
    assert.is((await requests.get(nameOf(later)))?.state, 'waiting')
    next.rebuilds()
    assert.is(await ended(later), 'done')
    await next.stop()
    await requests.request(nameOf(later), { verify: false })
    assert.is(await ended(later), 'failed', 'nobody would build it')
    await old.stop()
  })

  upgrades('the lease of a projector of 0.1.0 keeps the versions that it names', async (context) => {
    const { readModels } = context
    const [node_id, liveness] = [newId(), new Liveness(readModels)]
    const [beating, holding] = [new AbortController(), new AbortController()]
    void liveness.join(node_id) // svc 0.1.0 announces nothing
    const beats = liveness.run(beating.signal)
    const lease =
      'projectors runs@2 events@2 projects@1 builds@1 files@1 uploads@1 context_variables@1 orgs@2 envs@1 api_keys@2 sessions@1 service_keys@1 domains@1 workers@1 call_days@2 file_totals@1'
    let isHeld = false
    const working = (signal: AbortSignal) =>
      new Promise<void>((resolve) => {
        isHeld = true
        signal.addEventListener('abort', () => resolve(), { once: true })
      })
    const held = holdLease(
      lease,
      { node_id, liveness, readModels, isAble: () => true },
      working,
      holding.signal,
    )
    await until(() => isHeld)
    await readModels.writer(earlier)
    const next = await openNode(context, later)
    await until(() => next.projectors.building.length === 0)
    await someLooks(context)
    assert.ok(await isStored(context, earlier))
    holding.abort()
    await held
    await until(async () => !(await isStored(context, earlier)))
    await next.stop()
    beating.abort()
    await beats
  })
}

const upgrades = (what: string, open: () => Promise<ReadModels> | ReadModels): void => {
  const each = suite<Context>(`versions of read models in a rolling upgrade, ${what}`, { timeoutMs: 60_000 })
  each.before.each(async (context) => {
    Object.assign(context, { store: openEventStore({ dir: tempDir() }), readModels: await open() })
  })
  each.after.each(async ({ store, readModels }) => {
    await readModels.close()
    await store.close()
  })
  rules(each)
  each.run()
}

upgrades('embedded', () => openReadModels({ dir: tempDir() }))
if (engineUrl('mongodb') !== null)
  upgrades('on MongoDB', () =>
    openMongoReadModels({ url: realEngines(tempDir(), namedUrl)['SVC_READ_MODELS'] ?? '' }),
  )
