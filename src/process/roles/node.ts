import type { Membership } from '../../cluster/membership.ts'
import type { Payloads } from '../../content/payloads.ts'
import type { Aggregates } from '../../domain/aggregates.ts'
import type { Background } from '../../loops/keepGoing.ts'
import type { Quotas } from '../../plans/quotas.ts'
import type { Views } from '../../projections/views.ts'
import type { DataKeys } from '../../secrets/dataKeys.ts'
import type { Keyring } from '../../secrets/keyring.ts'
import type { Config } from '../config.ts'
import type { Engines } from '../engines.ts'

/** What every role of a process has in common: the engines, the loops in the background, and what is built on them. */
export interface Node extends Engines, Background {
  readonly config: Config
  /** Identifies this process until it ends. */
  readonly node_id: string
  readonly aggregates: Aggregates
  readonly payloads: Payloads
  readonly keyring: Keyring
  readonly dataKeys: DataKeys
  readonly views: Views
  readonly quotas: Quotas
  /** The other nodes; null when this process works alone. */
  readonly membership: Membership | null
  /** Registers what is called when the process stops, in reverse order. */
  readonly onClose: (close: () => Promise<void> | void) => void
}
