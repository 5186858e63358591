import { useSignal } from '@preact/signals'
import type { ProjectFunction } from '../../client/index.ts'
import { api, isGone } from '../frame/api.ts'
import { useLoaded } from '../frame/load.ts'
import { DEPLOYED_MS, useRepeat } from '../frame/repeat.ts'
import { linkTo, param } from '../frame/router.ts'
import { may } from '../frame/session.ts'
import { offsetOf } from '../parts/pager.tsx'
import { NoProject, ProjectPage } from '../parts/projectChoice.tsx'
import { List } from '../parts/list.tsx'
import type { Column } from '../parts/table.tsx'
import { Empty, Name } from '../parts/texts.tsx'
import { CallFunction, LastCall, type Called } from './functions/callFunction.tsx'
import { Figures } from './functions/figures.tsx'
import { Schedules } from './functions/schedules.tsx'
import { Triggers } from './functions/triggers.tsx'
import { Webhooks } from './functions/webhooks.tsx'

/** Each function has a request for its figures, so a page has fewer than other lists. */
const PAGE = 20

/** The functions of the deployed build of a project, with what starts them. */
export const Functions = () => <ProjectPage name="Functions" content={FunctionsOf} />

const FunctionsOf = ({ project }: { readonly project: string }) => {
  const functions = useLoaded(
    (signal) =>
      api.request('GET /v1/projects/{project}/functions', {
        path: { project },
        query: { limit: PAGE, offset: offsetOf() },
        signal,
      }),
    [project, param('offset')],
  )
  useRepeat(functions.reload, DEPLOYED_MS)
  const called = useSignal<Called | null>(null)
  const isDeployed = (functions.data?.pagination.total ?? 0) > 0
  if (isGone(functions.error)) return <NoProject project={project} />
  const columns: readonly Column<ProjectFunction>[] = [
    {
      name: 'Function',
      cell: ({ fn }) => (
        <a href={linkTo('/runs', { project, fn })} title={`Runs of ${fn}`}>
          <Name of={fn} />
        </a>
      ),
    },
    { name: 'Started by', cell: (fn) => <Triggers of={fn} /> },
    {
      name: 'Last 24 hours',
      cell: ({ fn }) =>
        may('run', 'read') && (
          <Figures key={called.value?.fn === fn ? called.value.reply.run_id : fn} project={project} fn={fn} />
        ),
    },
    {
      name: 'Actions',
      cell: (fn) => <CallFunction project={project} of={fn} onCalled={(call) => (called.value = call)} />,
    },
  ]
  return (
    <>
      {called.value && <LastCall called={called.value} />}
      <List
        of={functions}
        caption="Functions"
        columns={columns}
        idOf={({ fn }) => fn}
        empty={
          <Empty command="npx svc deploy">
            No build of this project is deployed. Deploy one from the folder of its sources:
          </Empty>
        }
      />
      {isDeployed && <Schedules project={project} />}
      {isDeployed && <Webhooks project={project} />}
    </>
  )
}
