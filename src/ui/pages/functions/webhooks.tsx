import type { Page, Run, Webhook } from '../../../client/index.ts'
import { api } from '../../frame/api.ts'
import { useRefresh } from '../../frame/live.ts'
import { useLoaded } from '../../frame/load.ts'
import { DEPLOYED_MS, useRepeat } from '../../frame/repeat.ts'
import { linkTo } from '../../frame/router.ts'
import { may } from '../../frame/session.ts'
import { Shown } from '../../parts/shown.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { Copy, Status, Time, Name } from '../../parts/texts.tsx'
import { REST_MS } from './figures.tsx'
import { refOf } from './triggers.tsx'

/** The webhooks that the page shows, at most. */
const MOST = 100
/** The deliveries that the page shows of each. */
const DELIVERIES = 5

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

/** A request to a webhook for a shell. A signature depends on the body, so the sender must add it. */
const curlOf = ({ method, url, auth, verify }: Webhook): string =>
  [
    `curl -X ${method} ${quoted(url)}`,
    ...(auth === 'required' ? ['-H "Authorization: Bearer $SVC_KEY"'] : []),
    ...(method === 'GET' || method === 'HEAD' ? [] : [`-H 'Content-Type: application/json' -d '{}'`]),
    ...(verify ? [`# add the signature of ${verify.preset}`] : []),
  ].join(' ')

const COLUMNS = (project: string): readonly Column<Webhook>[] => [
  { name: 'Function', cell: (webhook) => <Name of={refOf(webhook)} /> },
  { name: 'Method', isShort: true, cell: ({ method }) => method },
  {
    name: 'URL',
    cell: ({ url }) => (
      <>
        <code>
          <Name of={url} />
        </code>{' '}
        <Copy text={url} />
      </>
    ),
  },
  {
    name: 'Callers',
    cell: ({ auth, verify }) => {
      if (verify) return `Signed by ${verify.preset}, with the secret ${verify.context}`
      return auth === 'required' ? 'With a key' : 'Everyone with the URL'
    },
  },
  {
    name: 'Last deliveries',
    cell: (webhook) => may('run', 'read') && <Deliveries project={project} fn={refOf(webhook)} />,
  },
  { name: 'Actions', cell: (webhook) => <Copy text={curlOf(webhook)} label="Copy as curl" /> },
]

/** The webhooks of the deployed build; nothing if there is none. */
export const Webhooks = ({ project }: { readonly project: string }) => {
  const webhooks = useLoaded(
    (signal) =>
      api.request('GET /v1/projects/{project}/webhooks', {
        path: { project },
        query: { limit: MOST },
        signal,
      }),
    [project],
  )
  useRepeat(webhooks.reload, DEPLOYED_MS)
  return (
    <Shown of={webhooks} loading={null}>
      {(page) => page.data.length > 0 && <WebhooksOf project={project} page={page} />}
    </Shown>
  )
}

interface Props {
  readonly project: string
  readonly page: Page<Webhook>
}

const WebhooksOf = ({ project, page: { data: rows, pagination } }: Props) => (
  <section aria-labelledby="webhooks">
    <h2 id="webhooks">Webhooks</h2>
    <p class="hint">A URL contains the secret token of its webhook: share it only with its sender.</p>
    <Table caption="Webhooks" columns={COLUMNS(project)} rows={rows} idOf={({ webhook_id }) => webhook_id} />
    {pagination.has_more && (
      <p>
        The first {MOST} of {pagination.total}. <code>npx svc webhooks</code> lists all.
      </p>
    )}
  </section>
)

const Deliveries = ({ project, fn }: { readonly project: string; readonly fn: string }) => {
  const runs = useLoaded((signal) => api.runs.list({ project, fn, limit: DELIVERIES, signal }), [project, fn])
  // A page has a hundred of these: a run of another function reloads none of them.
  useRefresh(['run:'], runs.reload, ({ data }) => 'fn' in data && data.fn === fn, REST_MS)
  return (
    <Shown of={runs} isInline loading={<span class="hint">…</span>}>
      {({ data }) => <DeliveryList runs={data} />}
    </Shown>
  )
}

const DeliveryList = ({ runs }: { readonly runs: readonly Run[] }) =>
  runs.length === 0 ? (
    <span class="hint">None</span>
  ) : (
    <ul class="triggers">
      {runs.map(({ run_id, status, start_time }) => (
        <li key={run_id}>
          <Status status={status} />{' '}
          <a href={linkTo(`/runs/${run_id}`)}>
            <Time at={start_time} />
          </a>
        </li>
      ))}
    </ul>
  )
