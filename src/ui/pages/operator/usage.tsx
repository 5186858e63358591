import type { OrgUsage } from '../../../client/index.ts'
import { ask } from '../../frame/api.ts'
import { useLoaded } from '../../frame/load.ts'
import { Shown } from '../../parts/shown.tsx'
import { Quota } from '../overview/quota.tsx'

/** The usage of an organization against its plan. */
export const Usage = ({ org }: { readonly org: string }) => {
  const usage = useLoaded(
    (signal) => ask<OrgUsage>('GET /operator/orgs/{org}/usage', { path: { org }, signal }),
    [org],
  )
  return <Shown of={usage}>{(data) => <Quota usage={data} />}</Shown>
}
