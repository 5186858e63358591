import { api } from '../frame/api.ts'
import { AuditList, BEFORE } from './audit/auditList.tsx'
import { TimeTravel } from './audit/timeTravel.tsx'

/** Who changed what in the environment, and how it was at any time. */
export const History = () => (
  <>
    <h1>Audit</h1>
    <TimeTravel />
    <AuditList
      title="Changes"
      past={BEFORE}
      load={(query, signal) => api.request('GET /v1/audit', { query, signal })}
    />
  </>
)
