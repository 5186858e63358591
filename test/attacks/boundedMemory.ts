import { mostResidentMibOf } from './processes.ts'
import type { Target } from './target.ts'

/** The most memory that the service may ever use (docs/operations.md). */
const MOST_RESIDENT_MIB = 1024

/** Fails if the service has ended or ever used more memory than it may. Returns the most. */
export const boundedMemory = ({ server }: Target): string => {
  const mib = mostResidentMibOf(server.process.pid ?? 0)
  if (mib === 0 || mib > MOST_RESIDENT_MIB)
    throw new Error(`Expected a service with at most ${MOST_RESIDENT_MIB} MiB of memory, got ${mib}`)
  return `at most ${mib} MiB`
}
