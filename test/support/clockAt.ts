import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tempDir } from './tempDir.ts'

const shiftedClock = new URL('../fixtures/shiftedClock.ts', import.meta.url).href
const sweepsAtOnce = new URL('../fixtures/sweepsAtOnce.ts', import.meta.url).href

/** The variables of a service whose clock is at a time, in milliseconds since 1970. `sweeps`: its sweeps begin at its start. */
export const clockAt = (ms: number, sweeps: boolean): Record<string, string> => {
  const SVC_TEST_CLOCK = join(tempDir(), 'clock')
  writeFileSync(SVC_TEST_CLOCK, String(ms - Date.now()))
  const imports = [shiftedClock, ...(sweeps ? [sweepsAtOnce] : [])]
  return { SVC_TEST_CLOCK, NODE_OPTIONS: imports.map((file) => `--import ${file}`).join(' ') }
}
