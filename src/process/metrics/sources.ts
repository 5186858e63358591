import type { RequestMeter } from '../../api/http/requestMeter.ts'
import type { OpenCounts } from '../../plans/openCounts.ts'
import type { Runtime } from '../../ports/runtime.ts'
import type { UntakenEvents } from '../../worker/untakenEvents.ts'
import type { Worker } from '../../worker/worker.ts'
import type { Config } from '../config.ts'
import type { Outages } from '../outages.ts'
import type { Readiness } from '../readiness.ts'
import type { Node } from '../roles/node.ts'
import type { SkippedFactsWatch } from '../roles/skippedFacts.ts'
import type { UnreadableBuildsWatch } from '../roles/unreadableBuilds.ts'

/** The mechanisms of a node that count something. Those of its roles are added while it starts. */
export interface Sources {
  readonly about: { readonly version: string; readonly git_sha: string }
  readonly config: Pick<Config, 'dataDir' | 'redis' | 'roles'>
  readonly readiness: Pick<Readiness, 'reason'>
  readonly outages: Outages
  readonly requests: RequestMeter
  openCounts?: OpenCounts
  node?: Node
  skippedFacts?: SkippedFactsWatch
  unreadableBuilds?: UnreadableBuildsWatch
  untaken?: UntakenEvents
  runtime?: Runtime
  worker?: Worker
}
