import type { Membership } from '../../cluster/membership.ts'
import type { Aggregates } from '../../domain/aggregates.ts'
import type { Config } from '../config.ts'
import type { DataKeys } from '../../secrets/dataKeys.ts'
import type { Engines } from '../engines.ts'
import type { Background } from '../../loops/keepGoing.ts'
import type { Payloads } from '../../content/payloads.ts'
import type { Views } from '../../projections/views.ts'
import type { Quotas } from '../../plans/quotas.ts'
import type { Keyring } from '../../secrets/keyring.ts'

/** What every role of a process has in common. */
export interface Node extends Engines, Background {
  readonly config: Config
  /** This process, until it ends. */
  readonly node_id: string
  readonly aggregates: Aggregates
  readonly payloads: Payloads
  readonly keyring: Keyring
  readonly dataKeys: DataKeys
  readonly views: Views
  readonly quotas: Quotas
  /** Who else there is; null when this process has its work to itself. */
  readonly membership: Membership | null
  /** Called when the process stops, the last one first. */
  readonly onClose: (close: () => Promise<void> | void) => void
}
