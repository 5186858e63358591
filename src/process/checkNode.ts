import { counted } from '../text/counted.ts'
import { type Check, failed, ok, warning } from './checks/check.ts'
import { checkDataDir } from './checks/dataDir.ts'
import { checkEngines } from './checks/engines.ts'
import { checkDisk, checkNodeVersion, checkOpenFiles } from './checks/machine.ts'
import { checkSandbox } from './checks/sandbox.ts'
import type { Config } from './config.ts'
import type { Engines } from './engines.ts'

type Given = Pick<Engines, 'store' | 'readModels' | 'blobs'> & { readonly config: Config }

interface State {
  readonly sandbox: { readonly tier: string; readonly reason: string } | null
  readonly notReady: () => string | null
  readonly readyDetails?: () => Readonly<Record<string, unknown>>
}

/** An event that waits for longer is a problem; the log has a warning about it too. */
const UNTAKEN_MS = 10_000

/** Checks this node while it runs. */
export const checkNode = async (
  { config, ...engines }: Given,
  { sandbox, notReady, readyDetails }: State,
): Promise<readonly Check[]> => [
  readinessOf(notReady()),
  ...backlogOf(readyDetails?.() ?? {}),
  ...(await checkEngines(config, engines)),
  ...checkDataDir(config),
  ...(await checkDisk(config.dataDir)),
  checkNodeVersion(),
  ...checkOpenFiles(),
  ...(sandbox ? [checkSandbox(sandbox, config.sandbox)] : []),
]

const readinessOf = (reason: string | null): Check =>
  reason === null
    ? ok('service', 'ready')
    : failed('service', `not ready: ${reason}`, 'see the log of the service for the cause')

const backlogOf = (details: Readonly<Record<string, unknown>>): readonly Check[] => {
  const untakenMs = Number(details['oldest_untaken_event_ms'] ?? 0)
  const skipped = Number(details['skipped_facts'] ?? 0)
  return [
    untakenMs > UNTAKEN_MS
      ? warning(
          'events',
          `the oldest event waits for a worker since ${Math.floor(untakenMs / 1000)} s`,
          'start more nodes with the role worker, or look for runs that never end',
        )
      : ok('events', 'workers take them in time'),
    ...(skipped > 0
      ? [
          warning(
            'read models',
            `read models lack ${counted(skipped, 'fact')} because of a defect`,
            'GET /operator/skipped-facts names them; upgrade svc, and the read models are built again',
          ),
        ]
      : []),
  ]
}
