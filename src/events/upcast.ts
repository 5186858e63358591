import { messageOf, PermanentError } from '../errors.ts'
import { describeFact, type KnownFact, type Recorded } from './event.ts'
import { type DomainEvent, type EventType, schemaOf } from './index.ts'

/** A fact as an earlier version of its schema had it. */
export interface EarlierFact {
  readonly type: string
  readonly [field: string]: unknown
}

/** Turns a fact of one version of its schema into a fact of the next version. Pure. */
export type Upcaster = (fact: EarlierFact) => EarlierFact

export type Upcasters = { readonly [T in EventType]?: readonly Upcaster[] }

/**
 * The changes of schemas, by type: the first function reads version 1 and returns version 2, and so on. The current
 * version of a type is one more than its number of functions. A log keeps every version that was ever written to it.
 */
const upcasters: Upcasters = {}

/** Reads and writes versions of facts. Only tests call it with changes other than those above. */
export const versionsWith = (changes: Upcasters) => {
  const changesOf = new Map<string, readonly Upcaster[]>(Object.entries(changes))
  const versions = new Map<string, number>(
    Object.keys(schemaOf).map((type) => [type, (changesOf.get(type)?.length ?? 0) + 1]),
  )

  const unreadable = (recorded: Recorded, reason: string): Recorded => ({ ...recorded, unreadable: reason })

  return {
    /** The version that this build writes. */
    versionOf: (type: EventType): number => versions.get(type) ?? 1,

    /** A stored fact in its current version; marked as unreadable when this build cannot read it. */
    upcast: (recorded: Recorded): Recorded => {
      const { event, metadata } = recorded
      const written = metadata.v ?? 1 // svc 0.1.0 wrote no version
      const current = versions.get(event.type)
      if (written === current) return recorded
      if (current === undefined) return unreadable(recorded, 'this build knows no such type')
      if (written > current) return unreadable(recorded, `this build knows versions up to ${current}`)
      try {
        let fact: EarlierFact = event
        for (const change of changesOf.get(event.type)?.slice(written - 1) ?? []) fact = change(fact)
        return { ...recorded, event: fact as DomainEvent, metadata: { ...metadata, v: current } }
      } catch (error) {
        return unreadable(recorded, `version ${current} cannot be made of it: ${messageOf(error)}`)
      }
    },
  }
}

export const { versionOf, upcast } = versionsWith(upcasters)

/** The error for a fact that cannot be processed. It names the fact; a repetition would fail again. */
export const unprocessable = (fact: KnownFact, reason: string, cause?: unknown): PermanentError =>
  new PermanentError(
    'internal_server_error',
    `The fact ${describeFact(fact)} cannot be processed: ${reason}`,
    { cause },
  )

/** Returns the fact, or throws when this build cannot read it. */
export const readable = (recorded: Recorded): Recorded => {
  if (recorded.unreadable !== undefined) throw unprocessable(recorded, recorded.unreadable)
  return recorded
}
