import type { EngineTime } from '../../ports/probe.ts'
import { type Check, failed, ok, warning } from './check.ts'

/** S3 refuses requests from 15 minutes on; times in lists and expiries are wrong long before. Milliseconds. */
const SKEW_WARNING_MS = 2000
const SKEW_FAILED_MS = 300_000

/**
 * The least difference between the clock of an engine and that of this machine; negative if the engine is behind. The
 * engine has read its clock at some time between the question and the answer.
 */
export const leastSkewMs = (
  { time, resolutionMs }: EngineTime,
  { began, ended }: { readonly began: number; readonly ended: number },
): number => {
  if (time > ended) return time - ended
  return Math.min(0, time + resolutionMs - began)
}

export const checkClock = (of: string, skewMs: number): Check => {
  const name = `clock of ${of}`
  const size = Math.abs(skewMs)
  if (size < SKEW_WARNING_MS) return ok(name, 'agrees with this machine')
  const detail = `at least ${Math.floor(size / 1000)} s ${skewMs > 0 ? 'ahead of' : 'behind'} this machine`
  return (size < SKEW_FAILED_MS ? warning : failed)(
    name,
    detail,
    'synchronize the clocks of both machines, for example with chrony or systemd-timesyncd',
  )
}
