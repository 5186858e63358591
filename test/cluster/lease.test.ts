import * as assert from 'uvu/assert'
import { openReadModels } from '../../src/adapters/embedded/readModels/index.ts'
import { openMongoReadModels } from '../../src/adapters/mongodb/index.ts'
import { holdLease } from '../../src/cluster/lease.ts'
import { Liveness } from '../../src/cluster/liveness.ts'
import { newId } from '../../src/ids.ts'
import type { ReadModels } from '../../src/ports/readModels.ts'
import { engineUrl, namedUrl } from '../support/engines.ts'
import { realEngines } from '../support/installation.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

interface Contender {
  readonly works: () => boolean
  /** Makes it able to work, or not. */
  able(isAble: boolean): void
  /** Its work rejects. */
  fail(): void
  /** Its sign-off: the next one need not wait. */
  leave(): Promise<void>
  /** As kill -9 of its process. */
  die(): void
}

const contender = (readModels: ReadModels): Contender => {
  const [node_id, liveness] = [newId(), new Liveness(readModels)]
  const [beating, holding] = [new AbortController(), new AbortController()]
  void liveness.join(node_id)
  const beats = liveness.run(beating.signal)
  let working = false
  let dead = false
  let isAble = true
  let fail = () => {}
  const work = async (signal: AbortSignal) => {
    working = true
    const failed = Promise.withResolvers<void>()
    fail = () => failed.reject(new Error('The work failed'))
    signal.addEventListener('abort', () => failed.resolve(), { once: true })
    await failed.promise.finally(() => (working = false))
  }
  const deps = { node_id, liveness, readModels, isAble: () => isAble }
  const held = holdLease('work', deps, work, holding.signal).catch(() => {})
  return {
    works: () => working && !dead,
    able: (now) => void (isAble = now),
    fail: () => fail(),
    async leave() {
      holding.abort()
      await held
      beating.abort()
      await beats // nothing is written any more when the read models close
    },
    die() {
      dead = true // it writes nothing any more, and so is silent
      beating.abort()
    },
  }
}

const leases = (what: string, open: () => Promise<ReadModels> | ReadModels) => {
  const lease = suite<{ readModels: ReadModels }>(`a lease, ${what}`, { timeoutMs: 60_000 })
  lease.before.each(async (context) => void (context.readModels = await open()))
  lease.after.each(({ readModels }) => readModels.close())

  lease('is held by one of several nodes that try at the same time', async ({ readModels }) => {
    const all = Array.from({ length: 4 }, () => contender(readModels))
    await until(() => all.some(({ works }) => works()))
    await until(() => all.filter(({ works }) => works()).length === 1)
    for (const one of all) await one.leave()
  })

  lease(
    'passes to the next node when its holder leaves, and when its holder is silent',
    async ({ readModels }) => {
      const first = contender(readModels)
      await until(() => first.works())
      const second = contender(readModels)
      await first.leave()
      await until(() => second.works())
      const third = contender(readModels)
      assert.not(third.works())
      second.die()
      await until(() => third.works())
      await third.leave()
      await second.leave()
    },
  )

  lease(
    'is left to the others by a node that cannot do the work, and by one whose work fails',
    async ({ readModels }) => {
      const first = contender(readModels)
      await until(() => first.works())
      first.able(false)
      await until(() => !first.works())
      const second = contender(readModels)
      await until(() => second.works())
      first.able(true)
      second.fail()
      await until(() => first.works())
      assert.not(second.works())
      await first.leave()
      await second.leave()
    },
  )

  lease.run()
}

leases('embedded', () => openReadModels({ dir: tempDir() }))
if (engineUrl('mongodb') !== null)
  leases('on MongoDB', () =>
    openMongoReadModels({ url: realEngines(tempDir(), namedUrl)['SVC_READ_MODELS'] ?? '' }),
  )
