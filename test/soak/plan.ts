import { randomOf } from '../support/randomOf.ts'

export const nodeFaults = ['kill', 'stop', 'pause', 'full disk', 'clock jump'] as const
export const linkFaults = ['refuse', 'swallow', 'reset', 'slow', 'half-close'] as const
export const standInFaults = [
  'cut reads',
  'doubled appends',
  'late replies',
  'missing replies',
  'refused appends',
  'deaf calls',
  'ended subscriptions',
  'forgotten consumers',
  'silence',
  'restart',
] as const

type NodeFault = (typeof nodeFaults)[number]
type LinkFault = (typeof linkFaults)[number]
type StandInFault = (typeof standInFaults)[number]

/** The place of a fault: a node, the link of a node (or of all nodes) to an engine, or the stand-in for the event store. */
type Place =
  | { readonly at: 'node'; readonly node: string; readonly what: NodeFault }
  | { readonly at: 'link'; readonly engine: string; readonly node: string | null; readonly what: LinkFault }
  | { readonly at: 'stand-in'; readonly what: StandInFault }

export type Fault = Place & {
  /** When it begins, after the start of the load, and how long it lasts. */
  readonly atMs: number
  readonly forMs: number
  /** Something from 0 to 99 that the fault may use, such as a size. */
  readonly amount: number
}

/** What can fail. */
export interface Targets {
  readonly nodes: readonly string[]
  readonly engines: readonly string[]
  readonly standIn: boolean
}

/** Pauses between the beginnings of two faults: longer than a few faults last together, so that work continues. */
const EVERY_MS = { from: 2000, below: 6000 } as const
const LASTS_MS = { from: 500, below: 7500 } as const
/** A node that was ended starts again soon. */
const AWAY_MS = { from: 100, below: 3000 } as const

/** The faults of a soak: the same for the same seed. Two faults of one node or one link never overlap. */
export const planOf = (seed: number, durationMs: number, targets: Targets): Fault[] => {
  const below = randomOf(seed)
  const within = ({ from, below: end }: { from: number; below: number }) => from + below(end - from)
  const pick = <T>(items: readonly T[]): T => items[below(items.length)] as T
  const busyUntil = new Map<string, number>()
  const faults: Fault[] = []
  for (let atMs = within(EVERY_MS); atMs < durationMs; atMs += within(EVERY_MS)) {
    const place = placeOf(targets, { below, pick })
    const ends = place.at === 'node' && (place.what === 'kill' || place.what === 'stop')
    const fault = { ...place, atMs, forMs: within(ends ? AWAY_MS : LASTS_MS), amount: below(100) }
    const key = busyKeyOf(place)
    if ((busyUntil.get(key) ?? 0) > atMs || atMs + fault.forMs > durationMs) continue
    busyUntil.set(key, atMs + fault.forMs)
    faults.push(fault)
  }
  return faults
}

const placeOf = (
  { nodes, engines, standIn }: Targets,
  { below, pick }: { below: (end: number) => number; pick: <T>(items: readonly T[]) => T },
): Place => {
  const kinds = ['node', 'node', ...(engines.length > 0 ? ['link'] : []), ...(standIn ? ['stand-in'] : [])]
  switch (pick(kinds)) {
    case 'link':
      return {
        at: 'link',
        engine: pick(engines),
        node: below(2) === 0 ? null : pick(nodes),
        what: pick(linkFaults),
      }
    case 'stand-in':
      return { at: 'stand-in', what: pick(standInFaults) }
    default:
      return { at: 'node', node: pick(nodes), what: pick(nodeFaults) }
  }
}

/** Links to one engine count as one: a fault of all nodes would end that of a single one. */
const busyKeyOf = (place: Place): string =>
  place.at === 'node' ? place.node : place.at === 'link' ? place.engine : place.at

export const describeFault = (fault: Fault): string => {
  const where =
    fault.at === 'node'
      ? fault.node
      : fault.at === 'link'
        ? `${fault.engine} of ${fault.node ?? 'all nodes'}`
        : fault.at
  return `${fault.what}, ${where}, ${fault.forMs} ms`
}
