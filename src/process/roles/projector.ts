import { holdLease } from '../../cluster/lease.ts'
import type { Membership } from '../../cluster/membership.ts'
import { ProgressReader, ProgressTeller } from '../../cluster/progress.ts'
import type { Engines } from '../engines.ts'
import { type Background, keepGoing } from '../../loops/keepGoing.ts'
import { type Progress, Projectors } from '../../projections/projectors.ts'

/** Without notices between nodes nobody can say that they wait: then batches grow no longer than this, milliseconds. */
const UNTOLD_LINGER_MS = 10
const LINGER_MS = 100

interface Deps extends Engines, Omit<Background, 'signal'> {
  readonly node_id: string
  readonly membership: Membership | null
}

/**
 * Folds the log into the read models if this process has the role, and tells how far they are. In a cluster
 * one node with the role works and the others stand by.
 */
export const startProjecting = (deps: Deps, projects: boolean, signal: AbortSignal): Progress => {
  const { store, readModels, hints, membership, node_id } = deps
  const background = { logger: deps.logger, onGivenUp: deps.onGivenUp ?? (() => {}) }
  if (!membership) {
    const projectors = new Projectors({ readModels, store, ...background })
    void projectors.run(signal)
    return projectors
  }
  if (projects) {
    const teller = new ProgressTeller(readModels, hints)
    const projectors = new Projectors({
      readModels,
      store,
      ...background,
      lingerMs: () => (hints.connected ? LINGER_MS : UNTOLD_LINGER_MS),
      onMoved: (name, position) => teller.moved(name, position),
    })
    hints.on('wanted', (name) => projectors.hurry(name))
    void keepGoing('Telling how far the read models are', (until) => teller.run(until), {
      ...background,
      signal,
    })
    const lease = `projectors ${projectors.names.join(' ')}`
    const work = (until: AbortSignal) => projectors.run(until)
    void keepGoing(
      'The projector',
      (until) => holdLease(lease, { node_id, membership, readModels }, work, until),
      { ...background, signal },
    )
  }
  return new ProgressReader({ readModels, hints }, signal)
}
