import { audit, auditLinks } from './audit.ts'
import { builds } from './builds.ts'
import { callDays } from './callDays.ts'
import { contextVariables } from './contextVariables.ts'
import { domains } from './customDomains.ts'
import { events } from './events.ts'
import { fileTotals } from './fileTotals.ts'
import { files } from './files.ts'
import { holdings } from './holdings.ts'
import { serviceKeys, sessions } from './issued.ts'
import { nameOf, type Projection } from './projection.ts'
import { projects } from './projects.ts'
import { provedDomains } from './provedDomains.ts'
import { runs } from './runs.ts'
import { apiKeys, envs, orgs } from './tenants.ts'
import { uploads } from './uploads.ts'
import { waitingRuns } from './waitingRuns.ts'
import { workers } from './workers.ts'

/** All read models, by the names that `Views` has for them. */
export const projectionOf = {
  runs,
  waitingRuns,
  events,
  projects,
  builds,
  files,
  uploads,
  contextVariables,
  orgs,
  envs,
  apiKeys,
  sessions,
  serviceKeys,
  domains,
  provedDomains,
  workers,
  callDays,
  fileTotals,
  holdings,
  audit,
  auditLinks,
} as const

export const allProjections: readonly Projection[] = Object.values(projectionOf)

/** The versions of read models that this build reads. */
export const allNames: readonly string[] = allProjections.map(nameOf)
