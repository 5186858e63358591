import type { Plan } from '../events/org.ts'

/** The value of an absent limit (SPEC.md, Usage and limits). */
export const UNLIMITED = -1

const MB = 1 << 20
const GB = 1 << 30
const TB = 1024 * GB

/** The limits that `GET /v1/org/usage` reports; `UNLIMITED` if absent. */
export interface UsageLimits {
  readonly runs_per_month: number
  /** Total size of all files. */
  readonly storage_bytes: number
  readonly team_members: number
  readonly call_retention_days: number
  readonly call_storage_bytes: number
}

export interface PlanTerms {
  readonly limits: UsageLimits
  /** For the organization on all nodes together; null: unlimited. */
  readonly requestsPerSecond: number | null
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
    requestsPerSecond: 5,
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
    requestsPerSecond: 20,
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
    requestsPerSecond: 100,
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
    requestsPerSecond: null,
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
    requestsPerSecond: null,
    maxFileBytes: 50 * GB,
    maxDomains: null,
  },
}
