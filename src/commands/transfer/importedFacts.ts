import type { ActorType } from '../../events/actor.ts'
import { checkedFact } from '../../events/checkFact.ts'
import type { EnvCause, Metadata } from '../../events/event.ts'
import type { DomainEvent } from '../../events/index.ts'
import { versionOf } from '../../events/upcast.ts'
import { AppError } from '../../errors.ts'
import { isId } from '../../ids.ts'
import { buildKey, oldFunctionsKey } from '../../ports/runtime.ts'
import { filesOf } from '../../content/contentKey.ts'
import { payloadsOf } from '../../content/payloads.ts'
import { checkedContentType, checkedPath } from '../../content/fileChecks.ts'
import { checkContextKey } from '../../events/contextKey.ts'
import { clock, isoOf } from '../../clock.ts'
import { checkedNetwork } from '../projects/projectNetwork.ts'
import { PROJECT_NAME } from '../projects/projectName.ts'
import { REFS } from './earlierContent.ts'
import { expires } from './expiredFacts.ts'
import { ImportedSizes } from './importedSizes.ts'
import { streamOfFact } from './streamOfFact.ts'

/** A resource whose id is used beyond its own stream. */
export type Kind = 'project' | 'stream' | 'build' | 'run' | 'event' | 'file' | 'variable'

export interface Introduced {
  readonly kind: Kind
  readonly id: string
}

export interface ImportedFact {
  readonly id: string
  readonly stream: string
  readonly revision: number
  /** On the first fact of its stream in the file: the number of those before it, which have expired. */
  readonly expired: number
  readonly event: DomainEvent
  readonly metadata: Metadata
  /** The resources that appear with this fact, or that it names although their beginning has expired. */
  readonly introduces: readonly Introduced[]
}

/** The fields of facts that name a resource. */
const FIELDS: Readonly<Record<string, Kind>> = {
  project_id: 'project',
  build_id: 'build',
  previous_build_id: 'build',
  run_id: 'run',
  event_id: 'event',
  file_id: 'file',
  stream_id: 'stream',
}

/** The facts with which a resource appears. */
const INTRODUCES: Readonly<Record<string, readonly (readonly [field: string, kind: Kind])[]>> = {
  ProjectCreated: [['project_id', 'project']],
  BuildUploaded: [['build_id', 'build']],
  StreamCreated: [['stream_id', 'stream']],
  EventPublished: [['event_id', 'event']],
  RunRequested: [['run_id', 'run']],
  RunStarted: [['run_id', 'run']],
  FileStored: [['file_id', 'file']],
  ContextVariableCreated: [['variable_id', 'variable']],
}

/** The resources whose first facts expire. */
const EXPIRING: ReadonlySet<Kind> = new Set(['stream', 'event', 'run'])

/** Each of them is a fact without content in the event store. */
const MAX_EXPIRED = 10_000_000

/**
 * Checks facts from a file that another operator may have written. Nothing in it is believed:
 * F1: a fact is valid by its schema, has this build's version, and is of the environment and of the stream that its fields name.
 * F2: a resource that a fact names was introduced by an earlier fact of the file, so no fact touches another tenant. If that fact may
 * have expired, the resource is introduced by the first that names it.
 * F3: a blob that a fact names is one of the environment.
 * F4: a stream begins with its first fact, or with another one if its facts expire, and has no gap after it.
 */
export class ImportedFacts {
  readonly sizes = new ImportedSizes()
  readonly #env_id: string
  readonly #known = new Map<Kind, Set<string>>()
  /** The number of facts of each stream so far. */
  readonly #lengths = new Map<string, number>()
  /** The streams that begin with a later fact. */
  readonly #cut = new Set<string>()
  #expired = 0

  constructor(env_id: string) {
    this.#env_id = env_id
  }

  /** The streams of the file whose facts expire by the plan. */
  expiring(): readonly string[] {
    return [...this.#lengths.keys()].filter(expires)
  }

  knows(kind: Kind, id: string): boolean {
    return this.#known.get(kind)?.has(id) === true
  }

  /** Throws `bad_request` with the reason. */
  check(value: unknown): ImportedFact {
    const { id, stream, revision, at, event, metadata } = recordOf(value)
    const refuse = (reason: string): AppError =>
      new AppError('bad_request', `The fact ${String(id).slice(0, 60)}: ${reason}`)
    try {
      if (typeof id !== 'string' || !isId(id)) throw new Error('id: expected a UUID')
      const fact = this.sizes.checked(checkedFact(recordOf(event))) // F1
      if (typeof stream !== 'string' || stream !== streamOfFact(fact, this.#env_id))
        throw new Error(`expected the stream of its fields, got ${String(stream).slice(0, 80)}`)
      const expired = this.#expiredBefore(stream, revision)
      const next = this.#lengths.get(stream) ?? expired
      if (revision !== next)
        throw new Error(`revision: expected ${next}, got ${String(revision).slice(0, 20)}`) // F4
      if (expired > 0) this.#cut.add(stream)
      const kept = {
        ...this.#metadataOf(recordOf(metadata), fact),
        first_at: timeOf(at),
      }
      checkFields(fact)
      this.#checkBlobs(fact)
      const introduces = this.#checkIds(fact, fact.type === 'RunLogged' || this.#cut.has(stream))
      this.#lengths.set(stream, next + 1)
      return { id, stream, revision: next, expired, event: fact, metadata: kept, introduces }
    } catch (error) {
      throw refuse(error instanceof Error ? error.message : String(error))
    }
  }

  /** F4: the number of expired facts before one. */
  #expiredBefore(stream: string, revision: unknown): number {
    if (this.#lengths.has(stream) || !expires(stream) || !Number.isSafeInteger(revision)) return 0
    const expired = Math.max(0, Number(revision))
    this.#expired += expired
    if (this.#expired > MAX_EXPIRED)
      throw new Error(
        `revision: expected at most ${MAX_EXPIRED} expired facts in a file, got ${this.#expired}`,
      )
    return expired
  }

  #metadataOf(
    { env_id, correlation_id, causation_id, actor, actor_type, ip, v = 1 }: Fields,
    { type }: DomainEvent,
  ): EnvCause & { v: number } {
    if (env_id !== this.#env_id) throw new Error('metadata.env_id: expected that of the file')
    if (v !== versionOf(type))
      throw new Error(`metadata.v: expected version ${versionOf(type)}, got ${String(v).slice(0, 20)}`)
    return {
      env_id: this.#env_id,
      correlation_id: shortText('metadata.correlation_id', correlation_id),
      ...(causation_id !== undefined && { causation_id: shortText('metadata.causation_id', causation_id) }),
      ...(actor !== undefined && { actor: shortText('metadata.actor', actor) }),
      ...(actor_type !== undefined && { actor_type: actorTypeOf(actor_type) }),
      ...(ip !== undefined && { ip: shortText('metadata.ip', ip) }),
      v: versionOf(type),
    }
  }

  /** F2. `isCut`: facts that introduce runs, events and their stream may have expired. */
  #checkIds(fact: DomainEvent, isCut: boolean): Introduced[] {
    const fields = recordOf(fact)
    const introduced: Introduced[] = []
    const own = INTRODUCES[fact.type] ?? []
    for (const [field, kind] of own) {
      const id = fields[field]
      if (typeof id !== 'string' || !isId(id)) throw new Error(`${field}: expected a UUID`)
      if (!this.knows(kind, id)) introduced.push({ kind, id })
    }
    const { build_ids: builds, unclaimed = {} } = fields
    for (const named of [fields, recordOf(unclaimed)]) {
      for (const [field, kind] of Object.entries(FIELDS)) {
        const id = named[field]
        if (id === undefined || (named === fields && own.some(([name]) => name === field))) continue
        if (this.knows(kind, String(id))) continue
        if (isCut && EXPIRING.has(kind) && isId(String(id))) introduced.push({ kind, id: String(id) })
        else throw new Error(`${field}: expected a ${kind} of the file, got ${String(id).slice(0, 60)}`)
      }
      const { input_at: input } = named
      if (input !== undefined) {
        const id = String(recordOf(input)['stream_id'])
        if (!isId(id)) throw new Error('input_at: expected the id of a stream')
        if (!this.knows('stream', id)) introduced.push({ kind: 'stream', id }) // all of it may have expired
      }
    }
    for (const id of Array.isArray(builds) ? builds : [])
      if (!this.knows('build', String(id))) throw new Error('build_ids: expected builds of the file')
    if (fields['org_id'] !== undefined) throw new Error('org_id: expected none')
    if ('env_id' in fields && fields['env_id'] !== this.#env_id)
      throw new Error('env_id: expected that of the file')
    if ('key_id' in fields && !isId(String(fields['key_id']))) throw new Error('key_id: expected a UUID')
    for (const { kind, id } of introduced) this.#known.set(kind, (this.#known.get(kind) ?? new Set()).add(id))
    return introduced
  }

  /** F3 */
  #checkBlobs(fact: DomainEvent): void {
    const within = (prefix: string, key: unknown, field: string) => {
      if (typeof key !== 'string' || !key.startsWith(prefix))
        throw new Error(`${field}: expected a blob below ${prefix}`)
    }
    const payloads = payloadsOf(this.#env_id)
    for (const holder of [recordOf(fact), recordOf('input' in fact ? fact.input : {})])
      for (const field of REFS)
        if (holder[field] !== undefined) within(payloads, recordOf(holder[field])['key'], field)
    const files = filesOf(this.#env_id)
    if (fact.type === 'FileStored') {
      within(files, fact.key, 'key')
      if (fact.replaced) within(files, fact.replaced.key, 'replaced')
    }
    if (fact.type === 'FileDeleted') within(files, fact.former.key, 'former')
    if (fact.type === 'BuildUploaded' && fact.storage_path !== buildKey(fact))
      throw new Error(`storage_path: expected ${buildKey(fact)}`)
    if ((fact.type === 'BuildUploaded' || fact.type === 'BuildDeployed') && fact.functions_ref)
      within(oldFunctionsKey(buildKey(fact)), fact.functions_ref.key, 'functions_ref')
  }
}

/** What a command checks before it appends such a fact. */
const checkFields = (fact: DomainEvent): void => {
  switch (fact.type) {
    case 'FileStored':
      checkedPath(fact.path)
      checkedContentType(fact.content_type)
      return
    case 'ProjectNetworkChanged':
      checkedNetwork(fact.network)
      return
    case 'ProjectCreated':
    case 'ProjectRenamed':
    case 'NameReserved':
      if (fact.type === 'ProjectCreated') checkedNetwork(fact.network ?? null)
      if (!NAME.test(fact.name)) throw new Error('name: expected the name of a project')
      return
    case 'ContextVariableCreated':
      checkContextKey(fact.key)
      return
    case 'BuildUploaded':
    case 'BuildDeployed':
      if (!/^[0-9a-f]{64}$/.test(fact.hash)) throw new Error('hash: expected a SHA-256')
      return
    case 'CallDayCounted':
      checkDay('day', fact.day)
      checkCounts([fact.runs, fact.bytes])
      return
    case 'RunDayCounted':
      checkDay('day', fact.day)
      for (const { n, d } of Object.values(fact.tallies)) checkCounts([...n, ...Object.values(d)])
      return
    case 'CallsExpired':
      checkDay('before', fact.before)
      return
    default:
      return
  }
}

/** After a day to come, no retention and no quota of calls would apply to the environment. */
const checkDay = (field: string, day: string): void => {
  const isPast = /^\d{4}-\d{2}-\d{2}$/.test(day) && day <= isoOf(clock.now() + AHEAD_MS).slice(0, 10)
  if (!isPast) throw new Error(`${field}: expected a past day such as 2026-05-01`)
}

const checkCounts = (counts: readonly number[]): void => {
  if (counts.some((count) => count < 0)) throw new Error('expected counts, got a number below 0')
}

const NAME = new RegExp(PROJECT_NAME)

type Fields = Readonly<Record<string, unknown>>

const recordOf = (value: unknown): Fields => {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Fields
  throw new Error('expected an object')
}

const ACTOR_TYPES = ['api-key', 'session', 'service-key', 'operator', 'client', 'run', 'system'] as const

const actorTypeOf = (value: unknown): ActorType => {
  const found = ACTOR_TYPES.find((type) => type === value)
  if (found !== undefined) return found
  throw new Error('metadata.actor_type: expected a kind of actor')
}

const shortText = (field: string, value: unknown): string => {
  if (typeof value === 'string' && value.length > 0 && value.length <= 200) return value
  throw new Error(`${field}: expected 1 to 200 characters`)
}

/** Clocks of two installations may differ by this, milliseconds. */
const AHEAD_MS = 24 * 3600_000

const timeOf = (value: unknown): string => {
  const isTime = typeof value === 'string' && /^\d{4}-\d{2}-\d{2}T[\d:.]{8,12}Z$/.test(value)
  if (isTime && Date.parse(value) <= clock.now() + AHEAD_MS) return value
  throw new Error('at: expected a past ISO 8601 time in UTC')
}
