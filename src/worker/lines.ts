import type { Recorded } from '../events/event.ts'
import type { RunPlan } from '../events/run.ts'

/**
 * Names the runs of an organization that wait for the same room: `child` is for the runs that other runs wait for, which must
 * not wait behind these, and `other` is for the rest.
 */
export type Line = `${'child' | 'other'} ${string}`

export const lineOf = (org_id: string, { parent_run_id }: Pick<RunPlan, 'parent_run_id'>): Line =>
  parent_run_id === undefined ? othersOf(org_id) : `child ${org_id}`

/** The line of what an event starts, or of a requested run. */
export const lineOfEvent = (org_id: string, { event }: Recorded): Line =>
  event.type === 'RunRequested' ? lineOf(org_id, event) : othersOf(org_id)

export const othersOf = (org_id: string): Line => `other ${org_id}`

export const isForChildren = (line: Line): boolean => line.startsWith('child ')

export const orgOf = (line: Line): string => line.slice(line.indexOf(' ') + 1)
