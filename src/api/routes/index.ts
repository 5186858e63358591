import type { Route } from '../route.ts'
import { buildRoutes } from './builds.ts'
import { contextRoutes } from './context.ts'
import { dataKeyRoutes } from './dataKeys.ts'
import { docsRoutesOf } from './docs.ts'
import { domainRoutes } from './domains.ts'
import { envRoutes } from './env.ts'
import { evalRoutes } from './eval.ts'
import { eventRoutes } from './events.ts'
import { fileRoutes } from './files.ts'
import { uploadRoutes } from './fileUploads.ts'
import { functionRoutes } from './functions.ts'
import { healthRoutes } from './health.ts'
import { operatorRoutes } from './operator.ts'
import { projectRoutes } from './projects.ts'
import { runRoutes } from './runs.ts'
import { serviceKeyRoutes } from './serviceKeys.ts'
import { sessionRoutes } from './sessions.ts'
import { streamRoutes } from './streams.ts'
import { webhookRoutes } from './webhooks.ts'

/** The API: every endpoint there is. Where two match, the earlier one wins. */
export const allRoutes: readonly Route[] = [
  ...healthRoutes,
  ...docsRoutesOf(() => allRoutes),
  ...projectRoutes,
  ...buildRoutes,
  ...contextRoutes,
  ...dataKeyRoutes,
  ...functionRoutes,
  ...eventRoutes,
  ...runRoutes,
  ...evalRoutes,
  ...streamRoutes,
  ...uploadRoutes, // before those of files: `uploads` is no id of one
  ...fileRoutes,
  ...envRoutes,
  ...sessionRoutes,
  ...serviceKeyRoutes,
  ...domainRoutes,
  ...webhookRoutes,
  ...operatorRoutes,
]
