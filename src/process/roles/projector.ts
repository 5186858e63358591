import { holdLease } from '../../cluster/lease.ts'
import type { Liveness } from '../../cluster/liveness.ts'
import { ProgressReader, ProgressReporter } from '../../cluster/progress.ts'
import type { Engines } from '../engines.ts'
import { type Background, keepGoing } from '../../loops/keepGoing.ts'
import { type Progress, Projectors } from '../../projections/projectors.ts'

/** A batch grows for this time while no reader waits. */
const LINGER_MS = 100
/** The same while no hints arrive: then a reader on another node cannot report that it waits. */
const LINGER_WITHOUT_HINTS_MS = 10

interface Deps extends Engines, Background {
  readonly node_id: string
  readonly liveness: Liveness | null
}

/**
 * Folds the log into the read models if this process has the role, and reports their positions. In a cluster, one node
 * with the role works and the others are on standby.
 */
export const startProjecting = (deps: Deps, projects: boolean): Progress => {
  const { store, readModels, hints, signal, logger, onGivenUp, liveness, node_id } = deps
  const base = { store, readModels, logger, onGivenUp }
  if (!liveness) {
    const projectors = new Projectors(base)
    void projectors.run(signal)
    return projectors
  }
  if (projects) {
    const reporter = new ProgressReporter(readModels, hints)
    const projectors = new Projectors({
      ...base,
      lingerMs: () => (hints.connected ? LINGER_MS : LINGER_WITHOUT_HINTS_MS),
      onMoved: (name, position) => reporter.moved(name, position),
    })
    hints.on('wanted', (name) => projectors.hurry(name))
    void keepGoing('The report of the positions of the read models', (until) => reporter.run(until), deps)
    const lease = `projectors ${projectors.names.join(' ')}`
    const work = (until: AbortSignal) => projectors.run(until)
    void keepGoing(
      'The projector',
      (until) => holdLease(lease, { node_id, liveness, readModels }, work, until),
      deps,
    )
  }
  return new ProgressReader({ readModels, hints }, signal)
}
