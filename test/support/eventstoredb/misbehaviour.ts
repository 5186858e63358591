import { type Metadata } from '@grpc/grpc-js'
import { notLeader, notReady, type Refusal } from './refusals.ts'

/** What goes wrong with an append. */
export interface AppendFault {
  /**
   * never: no answer comes. drop: the connection is reset. late: the answer comes after `afterMs`. twice: it comes
   * again after `afterMs`. stranger: an answer to an append that nobody sent comes first. timeout: the server
   * says that it gave up waiting. not ready: refused as while it starts, and not written. An append that has a
   * call to itself cannot be answered twice or by a stranger: it is answered well.
   */
  readonly reply: 'never' | 'drop' | 'late' | 'twice' | 'stranger' | 'timeout' | 'not ready'
  /** Whether the events are in the log all the same; default true. */
  readonly written?: boolean
  readonly afterMs?: number
}

/** How often a fault was met so far. */
export interface Struck {
  readonly times: number
}

const SERVICES = ['features', 'gossip', 'reads', 'subscriptions', 'groups', 'appends'] as const

export type Service = (typeof SERVICES)[number]

/** What tests may do to a node; it lasts until `heal`, also over a restart. */
export interface Misbehave {
  /** The next `times` (default 1) appends, to a stream for which `stream` says so, go wrong. */
  appends(fault: AppendFault, options?: { times?: number; stream?: (name: string) => boolean }): Struck
  /** The next `times` (default 1) reads end after so many events, as if that was all. */
  cutReads(afterEvents: number, options?: { times?: number }): Struck
  /** Ends all open subscriptions, also those to groups, as if that was all. */
  endSubscriptions(): void
  /** These services (default: all) take what comes and tell nothing, as a paused node; `heal` lets it all go on. */
  silence(...services: readonly Service[]): void
  /** Refuses everything as a server that starts or stops. */
  notReady(): void
  /** Refuses as a follower: writers, groups and readers who require the leader are sent there. */
  follow(leader: { readonly port: number }): void
  /** Groups store no checkpoints: after a restart they deliver again from the last one before. */
  holdCheckpoints(): void
  /** Says that it is a version that knows nothing of batch appends. */
  beOld(): void
  heal(): void
}

interface Rule<Fault> {
  readonly fault: Fault
  readonly stream: (name: string) => boolean
  readonly struck: { times: number }
  left: number
}

/** The faults of a node, for its services to ask. */
export class Misbehaviour implements Misbehave {
  #appends: Rule<AppendFault>[] = []
  #reads: Rule<number>[] = []
  readonly #silent = new Set<Service>()
  #starting = false
  #leader: { readonly port: number } | undefined
  #checkpointsHeld = false
  #old = false
  #healed = Promise.withResolvers<void>()
  readonly #endings = new Set<() => void>()
  readonly #followings = new Set<() => void>()

  appends(
    fault: AppendFault,
    { times = 1, stream = () => true }: { times?: number; stream?: (name: string) => boolean } = {},
  ): Struck {
    return add(this.#appends, { fault, stream, left: times, struck: { times: 0 } })
  }

  cutReads(afterEvents: number, { times = 1 } = {}): Struck {
    return add(this.#reads, { fault: afterEvents, stream: () => true, left: times, struck: { times: 0 } })
  }

  endSubscriptions(): void {
    for (const end of this.#endings) end()
  }

  silence(...services: readonly Service[]): void {
    for (const service of services.length > 0 ? services : SERVICES) this.#silent.add(service)
  }

  notReady(): void {
    this.#starting = true
  }

  follow(leader: { readonly port: number }): void {
    this.#leader = leader
    for (const stepDown of this.#followings) stepDown()
  }

  holdCheckpoints(): void {
    this.#checkpointsHeld = true
  }

  heal(): void {
    this.#appends = []
    this.#reads = []
    this.#silent.clear()
    this.#starting = false
    this.#leader = undefined
    this.#checkpointsHeld = false
    this.#old = false
    this.#healed.resolve()
    this.#healed = Promise.withResolvers()
  }

  beOld(): void {
    this.#old = true
  }

  get isOld(): boolean {
    return this.#old
  }

  get checkpointsHeld(): boolean {
    return this.#checkpointsHeld
  }

  get leader(): { readonly port: number } | undefined {
    return this.#leader
  }

  appendFault(stream: string): AppendFault | undefined {
    return strike(this.#appends, stream)
  }

  /** After how many events the next read ends. */
  readCut(): number {
    return strike(this.#reads, '') ?? Infinity
  }

  /** Resolves when the service speaks again; undefined when it is not silent. */
  silenceOf(service: Service): Promise<void> | undefined {
    return this.#silent.has(service) ? this.#healed.promise : undefined
  }

  /** Why the node does not take a call of this service. */
  refusalOf(service: Service, asked?: Metadata): Refusal | undefined {
    if (service === 'features' || service === 'gossip') return undefined
    if (this.#starting) return notReady()
    const leads = service === 'appends' || service === 'groups' || asked?.get('requires-leader')[0] === 'true'
    return this.#leader && leads ? notLeader('127.0.0.1', this.#leader.port) : undefined
  }

  /** Has `end` called by `endSubscriptions` until the returned function is called. */
  onEnd(end: () => void): () => void {
    this.#endings.add(end)
    return () => void this.#endings.delete(end)
  }

  /** Has `stepDown` called when the node becomes a follower until the returned function is called. */
  onFollow(stepDown: () => void): () => void {
    this.#followings.add(stepDown)
    return () => void this.#followings.delete(stepDown)
  }
}

const add = <Fault>(rules: Rule<Fault>[], rule: Rule<Fault>): Struck => {
  rules.push(rule)
  return rule.struck
}

const strike = <Fault>(rules: readonly Rule<Fault>[], stream: string): Fault | undefined => {
  const rule = rules.find((one) => one.left > 0 && one.stream(stream))
  if (!rule) return undefined
  rule.left--
  rule.struck.times++
  return rule.fault
}
