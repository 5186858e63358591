import type { Plan } from '../events/org.ts'

/** The value of an absent limit (SPEC.md, Usage and limits). */
export const UNLIMITED = -1

const MB = 1 << 20
const GB = 1 << 30
const TB = 1024 * GB

/** The limits that `GET /v1/org/usage` reports; `UNLIMITED` if absent. */
export interface UsageLimits {
  readonly runs_per_month: number
  /** Total size of all files, zips of builds and parts of uploads in progress. */
  readonly storage_bytes: number
  readonly team_members: number
  readonly call_retention_days: number
  readonly call_storage_bytes: number
}

/**
 * Numbers of things that an organization may have. They are finite in every plan, because each node has them in memory or
 * serves them with memory and connections.
 */
export interface CountLimits {
  readonly projects: number
  readonly buildsPerProject: number
  readonly functionsPerBuild: number
  /** Functions of all deployed and live builds. */
  readonly functions: number
  readonly variablesPerProject: number
  /** Service keys that are valid, per API key. */
  readonly serviceKeysPerApiKey: number
  /** Uploads in parts that are in progress. */
  readonly uploads: number
  /** Names of consumers of the environment stream, per environment. */
  readonly consumers: number
  /** Live streams that are open at a time, on each node. */
  readonly streams: number
  /** Uploads of builds that are in progress at a time, on each node. */
  readonly buildUploads: number
  /** Parts of unknown size that are received at a time, on each node: its disk has them before they are stored. */
  readonly spooledParts: number
}

export interface PlanTerms {
  readonly limits: UsageLimits
  readonly counts: CountLimits
  /** For the organization on all nodes together; null: unlimited. */
  readonly requestsPerSecond: number | null
  /** The size of the changes to everything but events and runs, for the organization; null: unlimited. */
  readonly changedBytesPerDay: number | null
  /** The size of one file. */
  readonly maxFileBytes: number
  /** 0: custom domains require a higher plan; null: unlimited. */
  readonly maxDomains: number | null
}

/** The terms of each plan (SPEC.md, Limits; docs/decisions/0015-plans-and-usage.md). */
export const termsOf: Readonly<Record<Plan, PlanTerms>> = {
  free: {
    limits: {
      runs_per_month: 10_000,
      storage_bytes: GB,
      team_members: 2,
      call_retention_days: 7,
      call_storage_bytes: GB,
    },
    counts: {
      projects: 20,
      buildsPerProject: 50,
      functionsPerBuild: 500,
      functions: 1000,
      variablesPerProject: 100,
      serviceKeysPerApiKey: 500,
      uploads: 10,
      consumers: 20,
      streams: 20,
      buildUploads: 4,
      spooledParts: 4,
    },
    requestsPerSecond: 5,
    changedBytesPerDay: 16 * MB,
    maxFileBytes: 100 * MB,
    maxDomains: 0,
  },
  starter: {
    limits: {
      runs_per_month: 100_000,
      storage_bytes: 10 * GB,
      team_members: 5,
      call_retention_days: 30,
      call_storage_bytes: 10 * GB,
    },
    counts: {
      projects: 100,
      buildsPerProject: 200,
      functionsPerBuild: 1000,
      functions: 5000,
      variablesPerProject: 200,
      serviceKeysPerApiKey: 2000,
      uploads: 50,
      consumers: 50,
      streams: 100,
      buildUploads: 8,
      spooledParts: 8,
    },
    requestsPerSecond: 20,
    changedBytesPerDay: 256 * MB,
    maxFileBytes: GB,
    maxDomains: 0,
  },
  pro: {
    limits: {
      runs_per_month: 1_000_000,
      storage_bytes: 100 * GB,
      team_members: 20,
      call_retention_days: 90,
      call_storage_bytes: 100 * GB,
    },
    counts: {
      projects: 500,
      buildsPerProject: 500,
      functionsPerBuild: 2000,
      functions: 20_000,
      variablesPerProject: 500,
      serviceKeysPerApiKey: 5000,
      uploads: 100,
      consumers: 100,
      streams: 500,
      buildUploads: 16,
      spooledParts: 16,
    },
    requestsPerSecond: 100,
    changedBytesPerDay: 2 * GB,
    maxFileBytes: 5 * GB,
    maxDomains: 3,
  },
  scale: {
    limits: {
      runs_per_month: 10_000_000,
      storage_bytes: TB,
      team_members: UNLIMITED,
      call_retention_days: 365,
      call_storage_bytes: TB,
    },
    counts: {
      projects: 2000,
      buildsPerProject: 1000,
      functionsPerBuild: 5000,
      functions: 50_000,
      variablesPerProject: 1000,
      serviceKeysPerApiKey: 10_000,
      uploads: 500,
      consumers: 500,
      streams: 2000,
      buildUploads: 32,
      spooledParts: 32,
    },
    requestsPerSecond: null,
    changedBytesPerDay: 16 * GB,
    maxFileBytes: 50 * GB,
    maxDomains: 50,
  },
  self_host: {
    limits: {
      runs_per_month: UNLIMITED,
      storage_bytes: UNLIMITED,
      team_members: UNLIMITED,
      call_retention_days: UNLIMITED,
      call_storage_bytes: UNLIMITED,
    },
    counts: {
      projects: 2000,
      buildsPerProject: 1000,
      functionsPerBuild: 10_000,
      functions: 50_000,
      variablesPerProject: 1000,
      serviceKeysPerApiKey: 10_000,
      uploads: 500,
      consumers: 1000,
      streams: 2000,
      buildUploads: 32,
      spooledParts: 32,
    },
    requestsPerSecond: null,
    changedBytesPerDay: null,
    maxFileBytes: 50 * GB,
    maxDomains: null,
  },
}

const DAY_SECONDS = 86_400

/**
 * Facts outlive their documents, so that a rebuild before their numbers are recorded still has them all. Documents stay until
 * their whole day has passed the period of the plan, and until the sweep of every six hours after that. The rest is for
 * slow sweeps and different clocks.
 */
const OUTLIVING_SECONDS = 36 * 3600

/** The seconds for which the event store keeps the facts of runs under a plan; null: for ever, also for an unknown plan. */
export const retentionOf = (plan: Plan | undefined): number | null => {
  const days = plan ? termsOf[plan].limits.call_retention_days : UNLIMITED
  return days === UNLIMITED ? null : days * DAY_SECONDS + OUTLIVING_SECONDS
}
