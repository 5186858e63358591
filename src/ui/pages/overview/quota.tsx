import type { OrgUsage } from '../../../client/index.ts'
import { Facts } from '../../parts/facts.tsx'
import { sizeText } from '../../parts/texts.tsx'

const countText = (count: number): string => count.toLocaleString('en')

/** What the plan of the organization limits, with the share in use. */
export const quotaOf = ({ usage, limits, usage_percent, live_streams }: OrgUsage) => [
  {
    name: 'Runs this month',
    used: countText(usage.runs_this_period),
    limit: limits.runs_per_month === -1 ? null : countText(limits.runs_per_month),
    percent: usage_percent.runs,
  },
  {
    name: 'Files',
    used: sizeText(usage.file_storage_bytes),
    limit: limits.storage_bytes === -1 ? null : sizeText(limits.storage_bytes),
    percent: usage_percent.file_storage,
  },
  {
    name: 'Stored runs',
    used: sizeText(usage.call_storage_bytes),
    limit: limits.call_storage_bytes === -1 ? null : sizeText(limits.call_storage_bytes),
    percent: usage_percent.call_storage,
  },
  {
    name: 'Live streams on this node',
    used: countText(live_streams.in_org),
    limit: countText(live_streams.limit),
    percent: (live_streams.in_org * 100) / live_streams.limit,
  },
]

export const Quota = ({ usage }: { readonly usage: OrgUsage }) => (
  <section aria-labelledby="quota">
    <h2 id="quota">Quota</h2>
    <Facts
      of={{
        ...Object.fromEntries(
          quotaOf(usage).map((quota) => [quota.name, <Used key={quota.name} of={quota} />]),
        ),
        'Live streams of this environment':
          usage.live_streams.in_env !== null && countText(usage.live_streams.in_env),
        Plan: usage.plan.name,
      }}
    />
  </section>
)

const Used = ({
  of: { name, used, limit, percent },
}: {
  readonly of: ReturnType<typeof quotaOf>[number]
}) => (
  <>
    {limit === null ? `${used}, no limit` : `${used} of ${limit}`}
    {limit !== null && (
      <>
        {' '}
        ({Math.round(percent)} %)
        <meter
          aria-label={`Share of the limit: ${name}`}
          min={0}
          max={100}
          high={90}
          value={Math.min(100, percent)}
        />
      </>
    )}
  </>
)
