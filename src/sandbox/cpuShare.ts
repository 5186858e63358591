import { availableParallelism, loadavg } from 'node:os'

/** At least this share is assumed, so that a silent child is noticed on any machine. */
const LEAST_SHARE = 0.5

/**
 * The share of its time in which a busy child gets a processor, from 0.5 to 1. Silence counts by this share: on an
 * overloaded machine, a healthy child may wait for a processor longer than its deadline.
 */
export const cpuShare = (
  load: number = loadavg()[0] ?? 0,
  processors: number = availableParallelism(),
): number => Math.max(LEAST_SHARE, Math.min(1, processors / Math.max(load, processors)))
