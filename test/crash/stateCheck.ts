import { mkdirSync, realpathSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { childCacheOf } from '../../src/process/childCache.ts'
import { messageOf } from '../../src/errors.ts'
import type { BlobRules } from './blobRules.ts'
import { checkService } from './checkService.ts'
import type { Image } from './cut.ts'
import type { Disk } from './disk.ts'
import { startService } from './killedService.ts'
import type { Ledger } from './ledger.ts'
import { materialize } from './materialize.ts'
import type { Recording } from './recording.ts'
import type { Reference } from './reference.ts'
import { reopen } from './reopen.ts'
import { NODE_START } from './strace.ts'

/** The files after a power cut, and everything that the service had acknowledged before it. */
export interface State {
  readonly disk: Disk
  readonly image: Image
  readonly answered: ReadonlySet<string>
  /** The clients' record of what was answered. */
  readonly ledger: Ledger
}

/** `refused`: the service does not start and says why, although all that was acknowledged is on the disk. */
export interface Problem {
  readonly type: 'lost' | 'damaged' | 'refused'
  readonly text: string
}

interface Known {
  readonly recording: Pick<Recording, 'dataDir' | 'cacheDir'>
  readonly reference: Reference
  readonly rules: BlobRules
}

/** Writes the files of a state below `dir`. Resolves with its data directory. */
export const layOut = (image: Image, { dataDir, cacheDir }: Known['recording'], dir: string): string => {
  mkdirSync(dir, { mode: 0o700 })
  const place = join(realpathSync(dir), 'data')
  materialize(image, dataDir, place)
  if (cacheDir !== join(dataDir, 'cache')) materialize(image, cacheDir, childCacheOf(place), { isOpen: true })
  return place
}

/** Removes what `layOut` has written. */
export const clearAway = (dir: string): void => {
  rmSync(childCacheOf(join(realpathSync(dirname(dir)), dir.slice(dirname(dir).length + 1), 'data')), {
    recursive: true,
    force: true,
  })
  rmSync(dir, { recursive: true, force: true })
}

/** Opens the engines on a state in this process, and compares their content with what was acknowledged. */
export const checkEngines = async (state: State, known: Known, dataDir: string): Promise<Problem | null> => {
  const reopened = await reopen(dataDir)
  const least = known.reference.leastAfter(state.answered)
  if (reopened.type === 'refused') return { type: 'refused', text: reopened.reason }
  if (reopened.type === 'damaged') return { type: 'damaged', text: reopened.problem }
  const { facts } = reopened
  const lost = known.reference.problemOf(facts, least)
  if (lost !== null) return { type: 'lost', text: lost }
  const damaged = known.rules.problemOf({ ...state, facts }, state.ledger)
  return damaged === null ? null : { type: 'damaged', text: damaged }
}

/** Starts the service on a state, and lets the clients compare it with their record. */
export const checkWholeService = async ({ ledger }: State, dataDir: string): Promise<Problem | null> => {
  try {
    const service = await startService(dataDir, NODE_START)
    const isDeployed = ledger.acknowledged('deployment').length > 0
    const [text] = isDeployed ? await checkService(service.target, ledger) : []
    await service.end('SIGKILL')
    return text === undefined ? null : { type: 'lost', text: `in the service: ${text}` }
  } catch (error) {
    return { type: 'refused', text: `in the service: ${messageOf(error)}` }
  }
}
