import type { Build, Page } from '../../client/index.ts'
import { ServiceError } from '../../client/index.ts'
import { api, isGone } from '../frame/api.ts'
import { useLoaded } from '../frame/load.ts'
import { DEPLOYED_MS, useRepeat } from '../frame/repeat.ts'
import { linkTo, param, query } from '../frame/router.ts'
import { offsetOf, PAGE } from '../parts/pager.tsx'
import { NoProject, ProjectPage } from '../parts/projectChoice.tsx'
import { List } from '../parts/list.tsx'
import type { Column } from '../parts/table.tsx'
import { Empty, shortId, sizeText, Time } from '../parts/texts.tsx'
import { BuildActions } from './builds/buildActions.tsx'
import { Changes } from './builds/changes.tsx'
import { UploadBuild } from './builds/uploadBuild.tsx'

/** The builds of a project. `build` in the URL is the one that is compared with the deployed build. */
export const Builds = () => <ProjectPage name="Builds" content={BuildsOf} />

interface Listed extends Page<Build> {
  readonly deployed: Build | undefined
}

const buildsOf = async (project: string, signal: AbortSignal): Promise<Listed> => {
  const path = { project }
  const page = await api.request('GET /v1/projects/{project}/builds', {
    path,
    query: { limit: PAGE, offset: offsetOf() },
    signal,
  })
  const isWhole = page.pagination.total <= page.data.length
  const shown = page.data.find(({ deployed }) => deployed)
  if (shown || isWhole) return { ...page, deployed: shown }
  const deployed = await api
    .request('GET /v1/projects/{project}/builds/deployed', { path, signal })
    .catch((error: unknown) => {
      if (error instanceof ServiceError && error.status === 404) return undefined
      throw error
    })
  return { ...page, deployed }
}

const BuildsOf = ({ project }: { readonly project: string }) => {
  const builds = useLoaded((signal) => buildsOf(project, signal), [project, param('offset')])
  useRepeat(builds.reload, DEPLOYED_MS)
  const chosen = param('build')
  const deployed = builds.data?.deployed
  if (isGone(builds.error)) return <NoProject project={project} />
  const columns: readonly Column<Build>[] = [
    {
      name: 'Build',
      isShort: true,
      cell: ({ build_id }) => (
        <a
          href={linkTo('/builds', { ...Object.fromEntries(query.value), build: build_id })}
          title={`Compare ${build_id} with the deployed build`}
        >
          {shortId(build_id)}
        </a>
      ),
    },
    { name: 'State', cell: (build) => <State build={build} /> },
    { name: 'Uploaded', cell: ({ created_at }) => <Time at={created_at} /> },
    { name: 'Size', isNumber: true, cell: ({ size }) => sizeText(size) },
    { name: 'SHA-256', cell: ({ hash }) => <code title={hash}>{hash.slice(0, 12)}</code> },
    {
      name: 'Actions',
      cell: (build) => (
        <BuildActions project={project} build={build} deployed={deployed} onDone={builds.reload} />
      ),
    },
  ]
  return (
    <>
      <UploadBuild project={project} onDone={builds.reload} />
      {chosen && (
        <section aria-labelledby="changes">
          <h2 id="changes">
            Build <code>{chosen}</code>
          </h2>
          <Changes key={`${chosen} ${deployed?.build_id}`} project={project} build_id={chosen} />
        </section>
      )}
      <List
        of={builds}
        caption="Builds, the newest first"
        columns={columns}
        idOf={({ build_id }) => build_id}
        empty={
          <Empty command="npx svc deploy">
            This project has no build. Deploy one from the folder of its sources:
          </Empty>
        }
      />
    </>
  )
}

const State = ({ build: { deployed, build_type } }: { readonly build: Build }) => (
  <>
    {deployed && <span class="status good">Deployed</span>}
    {deployed && build_type === 'live' && ' '}
    {build_type === 'live' && (
      <span class="status warn" title="A development build: evaluated code runs beside the newest one">
        Live
      </span>
    )}
  </>
)
