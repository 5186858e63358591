import { isAppError, messageOf } from '../../src/errors.ts'
import { openLogger } from '../../src/logger.ts'
import type { EventStore } from '../../src/ports/eventStore.ts'
import { readConfig } from '../../src/process/config.ts'
import { lockDataDir } from '../../src/process/dataDir.ts'
import { openEngines } from '../../src/process/engines.ts'
import { openLog } from '../../src/process/openLog.ts'
import { openSecrets } from '../../src/process/secretsFile.ts'
import type { Recorded } from '../../src/events/event.ts'
import { environmentOf } from './killedService.ts'
import { factsIn } from './reference.ts'

/** What opening a data directory has shown. */
export type Reopened =
  | { readonly type: 'started'; readonly facts: readonly Recorded[] }
  | { readonly type: 'refused'; readonly reason: string }
  | { readonly type: 'damaged'; readonly problem: string }

/** Opens a data directory as a start of the service does, up to the read models, and reads the whole log by both ways. */
export const reopen = async (dataDir: string): Promise<Reopened> => {
  const config = readConfig(environmentOf(dataDir))
  const closers: (() => Promise<void> | void)[] = []
  let facts: readonly Recorded[] = []
  let problem: string | null = null
  try {
    closers.push(lockDataDir(config.dataDir))
    const secrets = openSecrets(config)
    const logger = openLogger(() => {})
    await openEngines(config, {
      logger,
      patiently: (step) => step(), // an engine that does not open is a refusal
      opened: (close) => closers.push(close),
      openKeys: async (engines) => {
        facts = await factsIn(engines.store) // before a start adds facts
        problem = await indexProblem(engines.store, facts)
        return openLog(engines, { secrets, config, logger })
      },
      refusing: () => {},
      damaged: () => {},
    })
    return problem === null ? { type: 'started', facts } : { type: 'damaged', problem }
  } catch (error) {
    const reason = messageOf(error)
    return isAppError(error)
      ? { type: 'refused', reason }
      : { type: 'damaged', problem: `no clear error: ${reason}` }
  } finally {
    for (const close of closers.reverse()) await close()
  }
}

/** Each stream, read through the index, has the facts that the log has of it. */
const indexProblem = async (store: EventStore, facts: readonly Recorded[]): Promise<string | null> => {
  for (const [stream, expected] of Map.groupBy(facts, (fact) => fact.stream)) {
    const found = await Array.fromAsync(store.read(stream))
    const isSame = found.length === expected.length && found.every(({ id }, n) => id === expected[n]?.id)
    if (!isSame) return `the index has ${found.length} facts of ${stream}, the log ${expected.length}`
  }
  return null
}
