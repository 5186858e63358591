import { setTimeout as delay } from 'node:timers/promises'
import { forgetBuilds } from '../../commands/builds/forgetBuilds.ts'
import { keepGoing } from '../../loops/keepGoing.ts'
import type { Runtime } from '../../ports/runtime.ts'
import type { Node } from './node.ts'

const EVERY_MS = 600_000
/** The pause while processes use builds that are not needed. */
const SOON_MS = 2000

/** Removes unpacked builds of this node that are not needed: at the start, every ten minutes, and after deletions. */
export const sweepBuildCache = (node: Node, runtime: Runtime): void => {
  const { store, views } = node
  let paused = new AbortController()
  const sweep = async (until: AbortSignal): Promise<void> => {
    while (!until.aborted) {
      paused = new AbortController()
      const { removed, left } = await forgetBuilds({ views, runtime })
      if (removed > 0) node.logger.info('Unpacked builds that are not needed were removed', { removed })
      const woken = AbortSignal.any([until, paused.signal])
      await delay(left > 0 ? SOON_MS : EVERY_MS, undefined, { signal: woken }).catch(() => {})
    }
  }
  const watch = async (until: AbortSignal): Promise<void> => {
    const types = ['BuildDeleted', 'ProjectDeleted'] as const
    for await (const { events } of store.subscribe({ after: await store.head(), types, signal: until }))
      if (events.length > 0) paused.abort()
  }
  void keepGoing('The sweep of unpacked builds', sweep, node)
  void keepGoing('The watch over deleted builds', watch, node)
}
