import { type Metadata } from '@grpc/grpc-js'
import { notLeader, notReady, type Refusal } from './refusals.ts'

/** A fault of an append. */
export interface AppendFault {
  /**
   * never: no reply. drop: the connection is reset. late: the reply is sent after `afterMs`. twice: the reply is
   * repeated after `afterMs`. stranger: a reply to an unknown append is sent first. timeout: the server reports a
   * timeout. not ready: refused as during a start, and not written. An append in a call of its own gets a
   * normal reply for twice and stranger.
   */
  readonly reply: 'never' | 'drop' | 'late' | 'twice' | 'stranger' | 'timeout' | 'not ready'
  /** Whether the events are written nevertheless; default true. */
  readonly written?: boolean
  readonly afterMs?: number
}

/** The number of times that a fault has occurred. */
export interface Struck {
  readonly times: number
}

/** A call that a node can accept without serving it. */
export type Call = 'read' | 'subscription' | 'consumer' | 'group' | 'append' | 'features' | 'gossip'

/**
 * unanswered: the call is accepted and never gets a reply, an error or an end, also after `heal`. ended: it ends without
 * an error. not ready: it is refused as during a start.
 */
export type CallFault = 'unanswered' | 'ended' | 'not ready'

const SERVICES = ['features', 'gossip', 'reads', 'subscriptions', 'groups', 'appends'] as const

export type Service = (typeof SERVICES)[number]

/** The faults that tests can cause in a node. They last until `heal`, even after a restart. */
export interface Misbehave {
  /** Lets the next `times` (default 1) appends fail, to streams that `stream` accepts. */
  appends(fault: AppendFault, options?: { times?: number; stream?: (name: string) => boolean }): Struck
  /** Lets the next `times` (default 1) calls of a kind fail. `consumer` joins a group; `group` is any other call about one. */
  calls(kind: Call, fault: CallFault, options?: { times?: number }): Struck
  /** Groups forget the consumers that they have now, whose calls stay open and get nothing. */
  forgetConsumers(): void
  /** Gossip names no leader and no follower, as during an election. */
  elect(): void
  /** Ends the next `times` (default 1) reads after a number of events, without an error. */
  cutReads(afterEvents: number, options?: { times?: number }): Struck
  /** Ends all open subscriptions, also those to groups, without an error. */
  endSubscriptions(): void
  /** These services (default: all) accept calls and do not reply, like a paused node. `heal` lets them continue. */
  silence(...services: readonly Service[]): void
  /** Refuses everything, like a server that starts or stops. */
  notReady(): void
  /** Redirects calls that require the leader to it, as a follower does. */
  follow(leader: { readonly port: number }): void
  /** Groups store no checkpoints: after a restart they deliver again from the previous one. */
  holdCheckpoints(): void
  /** Reports a version without batch appends. */
  beOld(): void
  heal(): void
}

interface Rule<Fault> {
  readonly fault: Fault
  readonly accepts: (name: string) => boolean
  readonly struck: { times: number }
  left: number
}

/** The faults of a node, as its services see them. */
export class Misbehaviour implements Misbehave {
  #appends: Rule<AppendFault>[] = []
  #calls: Rule<CallFault>[] = []
  #reads: Rule<number>[] = []
  readonly #silent = new Set<Service>()
  #starting = false
  #electing = false
  #leader: { readonly port: number } | undefined
  #checkpointsHeld = false
  #old = false
  #healed = Promise.withResolvers<void>()
  readonly #endings = new Set<() => void>()
  readonly #followings = new Set<() => void>()
  readonly #forgettings = new Set<() => void>()

  appends(
    fault: AppendFault,
    { times = 1, stream = () => true }: { times?: number; stream?: (name: string) => boolean } = {},
  ): Struck {
    return add(this.#appends, { fault, accepts: stream, left: times, struck: { times: 0 } })
  }

  calls(kind: Call, fault: CallFault, { times = 1 } = {}): Struck {
    return add(this.#calls, { fault, accepts: (asked) => asked === kind, left: times, struck: { times: 0 } })
  }

  forgetConsumers(): void {
    for (const forget of this.#forgettings) forget()
  }

  elect(): void {
    this.#electing = true
  }

  cutReads(afterEvents: number, { times = 1 } = {}): Struck {
    return add(this.#reads, { fault: afterEvents, accepts: () => true, left: times, struck: { times: 0 } })
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
    this.#calls = []
    this.#reads = []
    this.#silent.clear()
    this.#starting = false
    this.#electing = false
    this.#leader = undefined
    this.#checkpointsHeld = false
    this.#old = false
    this.#healed.resolve()
    this.#healed = Promise.withResolvers()
  }

  beOld(): void {
    this.#old = true
  }

  get isElecting(): boolean {
    return this.#electing
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

  /** The fault of a call that arrives now. */
  callFault(kind: Call): CallFault | undefined {
    return strike(this.#calls, kind)
  }

  /** The number of events after which the next read ends. */
  readCut(): number {
    return strike(this.#reads, '') ?? Infinity
  }

  /** Resolves when the service replies again; undefined if it is not silent. */
  silenceOf(service: Service): Promise<void> | undefined {
    return this.#silent.has(service) ? this.#healed.promise : undefined
  }

  /** The reason why the node refuses a call of this service. */
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

  /** Has `forget` called by `forgetConsumers` until the returned function is called. */
  onForget(forget: () => void): () => void {
    this.#forgettings.add(forget)
    return () => void this.#forgettings.delete(forget)
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

const strike = <Fault>(rules: readonly Rule<Fault>[], name: string): Fault | undefined => {
  const rule = rules.find((one) => one.left > 0 && one.accepts(name))
  if (!rule) return undefined
  rule.left--
  rule.struck.times++
  return rule.fault
}
