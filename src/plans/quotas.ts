import { BoundedMap } from '../boundedMap.ts'
import { clock } from '../clock.ts'
import { AppError } from '../errors.ts'
import type { Plan } from '../events/org.ts'
import { atMost } from '../loops/deadline.ts'
import type { FileQuota, Replaced, Reservation } from '../content/fileQuota.ts'
import { type CountLimits, termsOf, UNLIMITED, type UsageLimits } from './plans.ts'
import type { DirectoryEnv } from '../projections/directory.ts'
import type { Views } from '../projections/views.ts'
import { type Usage, usageModels, usageOf } from './usage.ts'

/** An increase that a request would cause. */
interface Wish {
  readonly limit: keyof UsageLimits
  readonly used: (usage: Usage) => number
  readonly more: number
  readonly what: string
}

/** At least one byte of stored data. */
const MORE_DATA: Wish = {
  limit: 'call_storage_bytes',
  used: (usage) => usage.call_storage_bytes,
  more: 1,
  what: 'bytes of events and runs',
}

const ONE_RUN: readonly Wish[] = [
  { limit: 'runs_per_month', used: (usage) => usage.runs_this_period, more: 1, what: 'runs per month' },
  MORE_DATA,
]

/** The limits whose bytes are reserved before they are stored. */
type Room = 'storage_bytes' | 'call_storage_bytes'

const wishOf: Readonly<Record<Room, (more: number) => Wish>> = {
  storage_bytes: (more) => ({
    limit: 'storage_bytes',
    used: (usage) => usage.file_storage_bytes,
    more,
    what: 'bytes of files, builds and parts of uploads',
  }),
  call_storage_bytes: (more) => ({ ...MORE_DATA, more }),
}

/** Bytes of one limit that are being stored. */
interface Held {
  /** Reserved and not released. */
  open: number
  /** Released since the first look. */
  closed: number
  /** The part of `closed` that the last look contains. */
  looked: number
}

/** The last known usage of an organization. */
interface Look {
  usage: Usage | null
  readonly held: Readonly<Record<Room, Held>>
  /** Contents that are being replaced. */
  readonly replacing: Set<string>
  /** The last work that counts something. */
  counting: Promise<unknown>
  /** The last decision about a reservation. */
  turn: Promise<unknown>
  /** Monotonic milliseconds. */
  lookedAt: number
  underWay: Promise<void> | null
}

const COUNTED = {
  projects: 'projects; delete one first',
  functionsPerBuild: 'functions per build',
  functions: 'functions in all deployed and live builds; delete a project or deploy builds with fewer',
  uploads: 'uploads in parts in progress; complete or cancel one first',
} as const satisfies Partial<Record<keyof CountLimits, string>>

/** A reservation under a plan without a limit. */
const UNCOUNTED: Reservation = { cover: () => Promise.resolve(), release: () => {} }

/** Usage below `NEAR` is read again after this time. */
const FRESH_MS = 1000
/** Above this share of a limit, usage is read for each request. */
const NEAR = 0.98
const LONGEST_LOOK_MS = 500
const KEPT_ORGS = 10_000

/** Throws `quota_exceeded` if a number is above what a plan allows. */
export const checkPlanCount = (plan: Plan, what: keyof typeof COUNTED, count: number): void => {
  const most = termsOf[plan].counts[what]
  if (count > most)
    throw new AppError('quota_exceeded', `The plan allows ${most} ${COUNTED[what]}; got ${count}`)
}

/**
 * Refuses requests that exceed the plan of an organization (SPEC.md, Usage and limits).
 * Q1: usage is not read if the plan has no limit.
 * Q2: everything in the log counts; concurrent requests may pass together.
 * Q3: if read models are behind or unavailable, the last known usage applies; without one, every request is allowed.
 * Q4: reserved bytes count until a look that began after their release, so that concurrent requests on one node cannot
 * exceed a limit together. Nodes do not know each other's reservations.
 */
export class Quotas implements FileQuota {
  readonly #views: Views
  readonly #time: Pick<typeof clock, 'monotonic'>
  readonly #looks = new BoundedMap<string, Look>(KEPT_ORGS)

  constructor(views: Views, time: Pick<typeof clock, 'monotonic'> = clock) {
    this.#views = views
    this.#time = time
  }

  /** Rejects with `quota_exceeded` when the organization of the environment may not start or store another run. */
  checkRun(env_id: string): Promise<void> {
    return this.#check(env_id, ONE_RUN)
  }

  /**
   * Rejects with `quota_exceeded` when the organization of the environment may store no more data of runs. Returns null if
   * the plan has no limit: a promise for each emit would cost time.
   */
  checkData(env_id: string): Promise<void> | null {
    const env = this.#views.directory.env(env_id)
    if (!env || termsOf[env.plan].limits[MORE_DATA.limit] === UNLIMITED) return null
    return this.#check(env_id, [MORE_DATA])
  }

  /** Returns the maximum size of one file of the environment in bytes. */
  maxFileBytes(env_id: string): number {
    return termsOf[this.#views.directory.env(env_id)?.plan ?? 'free'].maxFileBytes
  }

  /** Returns the numbers of things that the plan of the environment's organization allows; the highest if it is not known yet. */
  countsOf(env_id: string): CountLimits {
    return termsOf[this.#planOf(env_id)].counts
  }

  #planOf(env_id: string): Plan {
    return this.#views.directory.env(env_id)?.plan ?? 'self_host'
  }

  /**
   * Runs work that counts something and then adds to it. Work of one organization on this node runs one after the other,
   * so that concurrent requests cannot exceed a number together.
   */
  async inTurn<T>(env_id: string, work: () => Promise<T>): Promise<T> {
    const env = this.#views.directory.env(env_id)
    if (!env) return work()
    const look = this.#lookAt(env.org_id)
    const done = look.counting.then(work)
    look.counting = done.catch(() => {})
    return done
  }

  /** Throws `quota_exceeded` if a number would be above what the plan of the environment's organization allows. */
  checkCount(env_id: string, what: keyof typeof COUNTED, count: number): void {
    checkPlanCount(this.#planOf(env_id), what, count)
  }

  /** Rejects with `quota_exceeded` when the plan does not allow `bytes` more for the files of the organization. */
  async checkRoom(env_id: string, bytes: number): Promise<void> {
    if (bytes > 0) await this.#check(env_id, [wishOf.storage_bytes(bytes)])
  }

  admitUpload<T>(env_id: string, begin: () => Promise<T>): Promise<T> {
    return this.inTurn(env_id, async () => {
      const { directory, holdings } = this.#views
      const org_id = directory.env(env_id)?.org_id
      if (org_id === undefined) return begin()
      await this.#views.settled('holdings')
      let uploads = 1
      for (const one of directory.envsOf(org_id)) {
        const equal = { env_id: one, kind: 'parts' }
        uploads += (await holdings.find({ equal, sort: 'holder', limit: 1, offset: 0 })).total
      }
      this.checkCount(env_id, 'uploads', uploads)
      return begin()
    })
  }

  /** Begins a reservation of bytes for a file, a build or a part. */
  roomFor(env_id: string, replaced?: Replaced): Reservation {
    return this.#reservation(env_id, 'storage_bytes', replaced)
  }

  /** Begins a reservation of bytes for the data of runs. */
  dataFor(env_id: string): Reservation {
    return this.#reservation(env_id, 'call_storage_bytes')
  }

  #reservation(env_id: string, room: Room, replaced?: Replaced): Reservation {
    const env = this.#views.directory.env(env_id)
    if (!env || termsOf[env.plan].limits[room] === UNLIMITED) return UNCOUNTED
    const look = this.#lookAt(env.org_id)
    const held = look.held[room]
    const id = replaced ? `${env_id}/${replaced.id}` : ''
    const free = replaced && !look.replacing.has(id) ? replaced.bytes : 0
    if (free > 0) look.replacing.add(id)
    let reserved = 0
    const reserve = async (more: number) => {
      const decided = look.turn.then(() => this.#decide(look, env_id, room, more))
      look.turn = decided.catch(() => {})
      await decided
      reserved += more
    }
    return {
      cover: async (bytes, ahead = 0) => {
        const more = bytes - free - reserved
        if (more <= 0) return
        if (ahead === 0) return reserve(more)
        await reserve(more + ahead).catch(() => reserve(more))
      },
      release: () => {
        held.open -= reserved
        held.closed += reserved
        reserved = 0
        if (free > 0) look.replacing.delete(id)
      },
    }
  }

  /** Decisions of an organization are made one after the other (Q4). */
  async #decide(look: Look, env_id: string, room: Room, more: number): Promise<void> {
    const held = look.held[room]
    const pending = () => held.open + held.closed - held.looked
    const before = pending()
    try {
      await this.#check(env_id, [wishOf[room](before + more)])
    } catch (error) {
      if (before === 0) throw error
      await atMost(LONGEST_LOOK_MS, look.underWay ?? Promise.resolve()) // it may have begun before a release
      await this.#check(env_id, [wishOf[room](pending() + more)])
    }
    held.open += more
  }

  async #check(env_id: string, wishes: readonly Wish[]): Promise<void> {
    const env = this.#views.directory.env(env_id)
    if (!env) return
    const { limits } = termsOf[env.plan]
    const limited = wishes.filter(({ limit }) => limits[limit] !== UNLIMITED)
    if (limited.length === 0) return // Q1
    const look = this.#lookAt(env.org_id)
    const isNear = ({ limit, used, more }: Wish) =>
      !look.usage || used(look.usage) + more > limits[limit] * NEAR
    if (limited.some(isNear)) await atMost(LONGEST_LOOK_MS, this.#refresh(look, env, limits))
    else if (this.#time.monotonic() - look.lookedAt > FRESH_MS) void this.#refresh(look, env, limits)
    const { usage } = look
    const over = usage && limited.find(({ limit, used, more }) => used(usage) + more > limits[limit])
    if (over)
      throw new AppError('quota_exceeded', `The plan ${env.plan} allows ${limits[over.limit]} ${over.what}`)
  }

  #lookAt(org_id: string): Look {
    const known = this.#looks.get(org_id)
    if (known) return known
    const none = (): Held => ({ open: 0, closed: 0, looked: 0 })
    const held = { storage_bytes: none(), call_storage_bytes: none() }
    const look: Look = {
      usage: null,
      held,
      replacing: new Set(),
      turn: Promise.resolve(),
      counting: Promise.resolve(),
      lookedAt: 0,
      underWay: null,
    }
    this.#looks.set(org_id, look)
    return look
  }

  /** Concurrent callers share one read. Never rejects (Q3). */
  #refresh(look: Look, { org_id }: DirectoryEnv, limits: UsageLimits): Promise<void> {
    if (look.underWay) return look.underWay
    const rooms = Object.values(look.held)
    const closed = rooms.map((held) => held.closed)
    look.underWay = this.#look(org_id, limits)
      .then(
        (usage) => {
          look.usage = usage
          rooms.forEach((held, i) => (held.looked = closed[i] ?? 0))
        },
        () => {},
      )
      .finally(() => {
        look.lookedAt = this.#time.monotonic()
        look.underWay = null
      })
    return look.underWay
  }

  async #look(org_id: string, limits: UsageLimits): Promise<Usage> {
    await this.#views.settled(...usageModels) // Q2
    return usageOf(this.#views, { org_id, limits, nowMs: clock.now() })
  }
}
