import type { Schedule } from '../../../client/index.ts'
import { api } from '../../frame/api.ts'
import { useRefresh } from '../../frame/live.ts'
import { useLoaded } from '../../frame/load.ts'
import { DEPLOYED_MS, useRepeat } from '../../frame/repeat.ts'
import { linkTo } from '../../frame/router.ts'
import { Action } from '../../parts/action.tsx'
import { refusalIn } from '../../parts/projectChoice.tsx'
import { Shown } from '../../parts/shown.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { Time, Name } from '../../parts/texts.tsx'
import { refOf } from './triggers.tsx'

/** The schedules that the page shows, at most. */
const MOST = 100

const COLUMNS: readonly Column<Schedule>[] = [
  { name: 'Function', cell: (schedule) => <Name of={refOf(schedule)} /> },
  { name: 'Cron', cell: ({ cron }) => <code>{cron}</code> },
  { name: 'Time zone', cell: ({ timezone }) => timezone },
  {
    name: 'State',
    cell: ({ paused, paused_at }) =>
      paused ? (
        <>
          <span class="status cancelled">Paused</span> <Time at={paused_at} />
        </>
      ) : (
        <span class="status good">Active</span>
      ),
  },
  {
    name: 'Last run',
    cell: ({ last_run_id, last_time }) =>
      last_run_id ? (
        <a href={linkTo(`/runs/${last_run_id}`)}>
          <Time at={last_time} />
        </a>
      ) : (
        <Time at={null} />
      ),
  },
  { name: 'Next run', cell: ({ next_time }) => <Time at={next_time} /> },
]

/** The schedules of the deployed build; nothing if there is none. */
export const Schedules = ({ project }: { readonly project: string }) => {
  const schedules = useLoaded(
    (signal) =>
      api.request('GET /v1/projects/{project}/schedules', {
        path: { project },
        query: { limit: MOST },
        signal,
      }),
    [project],
  )
  useRefresh(['run:'], schedules.reload)
  useRepeat(schedules.reload, DEPLOYED_MS)
  const columns: readonly Column<Schedule>[] = [
    ...COLUMNS,
    {
      name: 'Actions',
      cell: (schedule) => <Actions project={project} schedule={schedule} onDone={schedules.reload} />,
    },
  ]
  return (
    <Shown of={schedules} loading={null}>
      {({ data: rows, pagination }) =>
        rows.length > 0 && (
          <section aria-labelledby="schedules">
            <h2 id="schedules">Schedules</h2>
            <Table
              caption="Schedules"
              columns={columns}
              rows={rows}
              idOf={({ schedule_id }) => schedule_id}
            />
            {pagination.has_more && (
              <p>
                The first {MOST} of {pagination.total}. <code>npx svc schedules</code> lists all.
              </p>
            )}
          </section>
        )
      }
    </Shown>
  )
}

interface ActionProps {
  readonly project: string
  readonly schedule: Schedule
  readonly onDone: () => void
}

const Actions = ({ project, schedule, onDone }: ActionProps) => {
  const { schedule_id, paused } = schedule
  const [fn, path] = [refOf(schedule), { project, schedule_id }]
  const refusal = refusalIn(project, 'build', 'execute')
  return (
    <div class="buttons">
      {paused ? (
        <Action
          label="Resume"
          does={`The next tick starts ${fn}. Ticks of the pause are not caught up.`}
          refusal={refusal}
          run={async () => {
            await api.request('POST /v1/projects/{project}/schedules/{schedule_id}/resume', { path })
            onDone()
            return `The schedule of ${fn} is active.`
          }}
        />
      ) : (
        <Action
          label="Pause"
          does={`No tick starts ${fn} until the schedule is resumed, also after deployments. Runs in progress continue.`}
          asks
          refusal={refusal}
          run={async () => {
            await api.request('POST /v1/projects/{project}/schedules/{schedule_id}/pause', { path })
            onDone()
            return `The schedule of ${fn} is paused.`
          }}
        />
      )}
      <Action
        label="Run now"
        does={`Starts ${fn} now with the event of a tick, also during a pause.`}
        asks
        refusal={refusal}
        run={async (idempotencyKey) => {
          const { run_id } = await api.request('POST /v1/projects/{project}/schedules/{schedule_id}/run', {
            path,
            idempotencyKey,
          })
          onDone()
          return (
            <>
              {fn} was started. <a href={linkTo(`/runs/${run_id}`)}>Show its run</a>
            </>
          )
        }}
      />
    </div>
  )
}
