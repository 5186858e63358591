import type { AuditedFact, Page } from '../../../client/index.ts'
import { ask } from '../../frame/api.ts'
import { linkTo } from '../../frame/router.ts'
import type { Column } from '../../parts/table.tsx'
import { AuditList } from '../audit/auditList.tsx'
import { OVER_TIME, OverTime } from './overTime.tsx'

const LINK: Column<AuditedFact> = {
  name: 'Past',
  isShort: true,
  cell: ({ stream }) => (
    <a href={linkTo('/operator', { section: 'audit', [OVER_TIME.stream]: stream })}>Over time</a>
  ),
}

/** The audit of all environments and of the installation, and any resource in it over time. */
export const InstallationAudit = () => (
  <>
    <OverTime />
    <AuditList
      title="Audit of the installation"
      past={LINK}
      load={(query, signal) => ask<Page<AuditedFact>>('GET /operator/audit', { query, signal })}
    />
  </>
)
