import { clock } from '../../clock.ts'
import { holdLease } from '../../cluster/lease.ts'
import type { Liveness } from '../../cluster/liveness.ts'
import { namesReadBy } from '../../cluster/namesRead.ts'
import { ProgressReader, ProgressReporter } from '../../cluster/progress.ts'
import type { Engines } from '../engines.ts'
import { type Background, keepGoing } from '../../loops/keepGoing.ts'
import { dropUnread, type Unread } from '../../projections/dropUnread.ts'
import type { Fill } from '../../projections/fill.ts'
import { type Progress, Projectors } from '../../projections/projectors.ts'
import { rebuildRequested } from '../../projections/rebuilding.ts'
import { serveEarlier } from '../../projections/serveEarlier.ts'
import type { LogLink } from './node.ts'

/** A batch grows for this time while no reader waits. */
const LINGER_MS = 100
/** The same while no hints arrive: then a reader on another node cannot report that it waits. */
const LINGER_WITHOUT_HINTS_MS = 10

/** A minute of looks: a node of an earlier version may restart without a new build of what it reads. */
const LOOKS = 12

/** The time that another node has to take the lease of one whose loop stays stopped, milliseconds: several of its looks. */
const YIELD_MS = 3000

interface Deps extends Pick<Engines, 'store' | 'readModels' | 'hints'>, Background {
  readonly node_id: string
  readonly liveness: Liveness | null
  readonly log: Pick<LogLink, 'isReached'>
  /** Builds new read models of the embedded engine. */
  readonly fill?: Fill
}

/** The positions of the read models, and the projectors of this process; null if it has none. */
interface Projecting {
  readonly progress: Progress
  readonly projectors: Projectors | null
}

/**
 * Folds the log into the read models if this process has the role, and reports their positions. In a cluster, one node
 * with the role works and the others are on standby.
 */
export const startProjecting = (given: Deps, projects: boolean): Projecting => {
  const { store, readModels, hints, signal, logger, liveness, node_id, fill, log } = given
  let yieldsUntil: number | undefined
  /** Another node may be able to do all of the work. If none is there, this one continues with the rest of it. */
  const onGivenUp = (reason: string) => {
    yieldsUntil ??= clock.monotonic() + YIELD_MS
    given.onGivenUp?.(reason)
  }
  const isAble = () => log.isReached() && clock.monotonic() >= (yieldsUntil ?? 0)
  const deps = { ...given, onGivenUp }
  const base = { store, readModels, logger, onGivenUp }
  const dropping = (unread: Omit<Unread, 'readModels'>, background: Background) =>
    keepGoing(
      'The removal of earlier read models',
      (until) => dropUnread({ readModels, ...unread }, until),
      background,
    )
  const rebuilding = (
    projectors: Projectors,
    { namesRead }: Pick<Unread, 'namesRead'>,
    background: Background,
  ) => {
    const own = { readModels, store, projectors, namesRead, logger, onSkipped: projectors.logSkipped }
    return keepGoing(
      'The rebuild of read models',
      (until) => rebuildRequested({ ...own, ...(fill && { fill }) }, until),
      background,
    )
  }
  if (!liveness) {
    const projectors = new Projectors({ ...base, ...(fill && { fill }) })
    const namesRead = () => Promise.resolve(new Set(projectors.names))
    void projectors.run(signal)
    void rebuilding(projectors, { namesRead }, deps)
    void dropping({ projectors, namesRead, looks: 1 }, deps)
    return { progress: projectors, projectors }
  }
  const progress = new ProgressReader({ readModels, hints }, signal)
  if (!projects) return { progress, projectors: null }
  const reporter = new ProgressReporter(readModels, hints)
  const forget = (name: string) => reporter.forget(name)
  const projectors = new Projectors({
    ...base,
    lingerMs: () => (hints.connected ? LINGER_MS : LINGER_WITHOUT_HINTS_MS),
    onNew: forget,
    onMoved: (name, position) => reporter.moved(name, position),
    wasComplete: (name) => reporter.hasReported(name),
    lostReports: () => reporter.lost(),
  })
  hints.on('wanted', (name) => projectors.hurry(name))
  void keepGoing('The report of the positions of the read models', (until) => reporter.run(until), deps)
  const lease = `projectors ${projectors.names.join(' ')}`
  const namesRead = () => namesReadBy({ readModels, liveness })
  const unread = { projectors, namesRead, forget, looks: LOOKS }
  const work = async (until: AbortSignal) => {
    const background = { ...deps, signal: until }
    await serveEarlier({ readModels, logger, namesRead, forget })
    await Promise.all([
      projectors.run(until),
      dropping(unread, background),
      rebuilding(projectors, unread, background),
    ])
  }
  void keepGoing(
    'The projector',
    (until) => holdLease(lease, { node_id, liveness, readModels, isAble }, work, until),
    deps,
  )
  return { progress, projectors }
}
