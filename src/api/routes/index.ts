import type { Route } from '../route.ts'
import { abandonedEventRoutes } from './abandonedEvents.ts'
import { apiKeyRoutes } from './apiKeys.ts'
import { backupRoutes } from './backups.ts'
import { askRoutes } from './ask.ts'
import { auditRoutes } from './audit.ts'
import { buildChangesRoute } from './buildChanges.ts'
import { buildRoutes } from './builds.ts'
import { contextRoutes } from './context.ts'
import { dashboardRoutes } from './dashboard.ts'
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
import { masterKeyRoutes } from './masterKey.ts'
import { mcpRoutes } from './mcp.ts'
import { metricsRoute } from './metrics.ts'
import { nodeRoutes } from './node.ts'
import { operatorRoutes } from './operator.ts'
import { projectionRoutes } from './projections.ts'
import { projectRoutes } from './projects.ts'
import { runControlRoutes } from './runControl.ts'
import { runRoutes } from './runs.ts'
import { scheduleRoutes } from './schedules.ts'
import { sdkRoutes } from './sdk.ts'
import { serviceKeyRoutes } from './serviceKeys.ts'
import { sessionRoutes } from './sessions.ts'
import { signInRoutes } from './signIn.ts'
import { operatorSignInRoutes } from './operatorSignIn.ts'
import { skippedFactRoutes } from './skippedFacts.ts'
import { streamRoutes } from './streams.ts'
import { transferRoutes } from './transfers.ts'
import { webhookRoutes } from './webhooks.ts'

/** Every endpoint of the API. If two match a request, the first one handles it. */
export const allRoutes: readonly Route[] = [
  ...healthRoutes,
  metricsRoute,
  ...docsRoutesOf(() => allRoutes),
  ...sdkRoutes,
  ...dashboardRoutes,
  ...mcpRoutes,
  ...projectRoutes,
  ...buildRoutes,
  buildChangesRoute,
  ...contextRoutes,
  ...dataKeyRoutes,
  ...functionRoutes,
  ...scheduleRoutes,
  ...eventRoutes,
  ...runRoutes,
  ...runControlRoutes,
  ...evalRoutes,
  ...streamRoutes,
  ...uploadRoutes, // before fileRoutes, where `uploads` would match `:file_id`
  ...fileRoutes,
  ...envRoutes,
  ...sessionRoutes,
  ...signInRoutes,
  ...serviceKeyRoutes,
  ...domainRoutes,
  ...askRoutes,
  ...webhookRoutes,
  ...auditRoutes,
  ...masterKeyRoutes,
  ...backupRoutes,
  ...transferRoutes,
  ...abandonedEventRoutes,
  ...skippedFactRoutes,
  ...nodeRoutes,
  ...projectionRoutes,
  ...operatorRoutes,
  ...operatorSignInRoutes,
  ...apiKeyRoutes,
]
