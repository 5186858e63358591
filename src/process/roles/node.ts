import type { Liveness } from '../../cluster/liveness.ts'
import type { Payloads } from '../../content/payloads.ts'
import type { Aggregates } from '../../domain/aggregates.ts'
import type { FairTurns } from '../../loops/fairTurns.ts'
import type { Background } from '../../loops/keepGoing.ts'
import type { Patiently } from '../../loops/patience.ts'
import type { Quotas } from '../../plans/quotas.ts'
import type { Tracer } from '../../ports/tracer.ts'
import type { Progress, Projectors } from '../../projections/projectors.ts'
import type { Views } from '../../projections/views.ts'
import type { DataKeys } from '../../secrets/dataKeys.ts'
import type { Keyring } from '../../secrets/keyring.ts'
import type { MasterKeys } from '../../secrets/masterKeys.ts'
import type { WrappedKeys } from '../../secrets/wrappedKeys.ts'
import type { SecretsFile } from '../secretsFile.ts'
import type { Config } from '../config.ts'
import type { Engines } from '../engines.ts'

/** The connection of this node to the event store. */
export interface LogLink {
  /** False while the event store has not answered for some seconds. */
  readonly isReached: () => boolean
  /** It has not answered for so long that other workers take over the runs of this one. */
  readonly isCutOff: () => boolean
  /** This node may take over the runs of workers that are cut off: the event store is away from them alone. */
  readonly isSettled: () => boolean
}

/** The parts that all roles of a process share: the engines, the background loops, and the layers above them. */
export interface Node extends Engines, Background {
  /** Repeats a step of the start while an engine is down. */
  readonly patiently: Patiently
  /** Aborts when the start is given up. */
  readonly starting: AbortSignal
  readonly config: Config
  /** Id of this process. */
  readonly node_id: string
  readonly log: LogLink
  /** Whether svc 0.1.0 began the log: its root key is the master key. */
  readonly hasEarlierKeys: boolean
  readonly aggregates: Aggregates
  readonly payloads: Payloads
  readonly keyring: Keyring
  readonly dataKeys: DataKeys
  readonly masterKeys: MasterKeys
  readonly masterKeyFile: SecretsFile | null
  readonly wrappedKeys: WrappedKeys
  readonly views: Views
  /** Null on a node without the role `projector`. */
  readonly projectors: Projectors | null
  /** The positions of the read models. */
  readonly progress: Progress
  readonly quotas: Quotas
  /** The event loop of this process, shared by organizations. */
  readonly turns: FairTurns
  readonly tracer: Tracer | null
  /** The other nodes; null when this process works alone. */
  readonly liveness: Liveness | null
  /** Registers a function to call when the process stops. They are called in reverse order. */
  readonly onClose: (close: () => Promise<void> | void) => void
}
