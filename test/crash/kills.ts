import { setTimeout as delay } from 'node:timers/promises'
import { checkService, Seen } from './checkService.ts'
import { Ledger } from './ledger.ts'
import { load } from './load.ts'
import { NPM_START, startService } from './killedService.ts'
import type { Command } from './strace.ts'
import { randomOf } from '../support/randomOf.ts'
import { allWriters, prepare } from './writers.ts'

/** The longest time under load before a kill. */
const LOAD_MS = 1500

export interface Kills {
  readonly dataDir: string
  readonly kills: number
  readonly seed: number
  readonly command?: Command
  readonly report: (line: string) => void
}

/**
 * Kills a service under load with SIGKILL and starts it again on its data directory, again and again. Compares it with the
 * record of the clients after each start. Resolves with one line for each difference.
 */
export const killAgainAndAgain = async ({
  dataDir,
  kills,
  seed,
  command = NPM_START,
  report,
}: Kills): Promise<string[]> => {
  const random = randomOf(seed)
  const ledger = new Ledger()
  const seen = new Seen()
  const writers = allWriters(ledger, random, 'k')
  let service = await startService(dataDir, command)
  await prepare(service.target, ledger)
  for (let kill = 1; kill <= kills; kill++) {
    const over = new AbortController()
    const loading = load(service.target, writers, over.signal)
    await delay(random(LOAD_MS))
    over.abort()
    await service.end('SIGKILL')
    await loading
    service = await startService(dataDir, command)
    const problems = await checkService(service.target, ledger, { seen })
    report(
      `kill ${kill} of ${kills}: ${acknowledgedIn(ledger)} acknowledged writes, ${problems.length} findings`,
    )
    if (problems.length > 0) {
      await service.end('SIGKILL')
      return problems
    }
  }
  const problems = await checkService(service.target, ledger)
  await service.end('SIGTERM')
  return problems
}

const acknowledgedIn = ({ writes }: Ledger): number =>
  writes.filter(({ acknowledged }) => acknowledged !== undefined).length
