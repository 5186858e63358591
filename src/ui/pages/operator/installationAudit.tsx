import type { AuditedFact, Page } from '../../../client/index.ts'
import { ask } from '../../frame/api.ts'
import { AuditList } from '../audit/auditList.tsx'

/** The audit of all environments and of the installation. */
export const InstallationAudit = () => (
  <AuditList
    title="Audit of the installation"
    load={(query, signal) => ask<Page<AuditedFact>>('GET /operator/audit', { query, signal })}
  />
)
