import { useSignal } from '@preact/signals'
import { type Project, ServiceError } from '../../../client/index.ts'
import { api } from '../../frame/api.ts'
import { type Loaded, useLoaded } from '../../frame/load.ts'
import { readAll, together } from '../../frame/readAll.ts'
import { linkTo } from '../../frame/router.ts'
import { may } from '../../frame/session.ts'
import { offsetOf, pageOf } from '../../parts/pager.tsx'
import { Lacking } from '../../parts/lacking.tsx'
import { List } from '../../parts/list.tsx'
import type { Column } from '../../parts/table.tsx'
import { Empty, Name, countText } from '../../parts/texts.tsx'

export interface Handler {
  readonly event_type: string
  readonly project: string
  readonly fn: string
}

/** How many projects have been read. */
interface Progress {
  readonly read: number
  readonly of: number
}

export interface LoadedHandlers extends Loaded<readonly Handler[]> {
  /** Null while nothing is read. */
  readonly progress: Progress | null
}

const handlersOf = async ({ project_id, name }: Project, signal: AbortSignal): Promise<Handler[]> => {
  const path = { project: project_id }
  try {
    const found = await readAll(
      (query) => api.request('GET /v1/projects/{project}/event-handlers', { path, query, signal }),
      ({ event_handler_id }) => event_handler_id,
    )
    return found.map(({ event_type, ns, var: variable }) => ({
      event_type,
      project: name,
      fn: `${ns}/${variable}`,
    }))
  } catch (error) {
    if (error instanceof ServiceError && error.status === 404) return [] // the project was deleted meanwhile
    throw error
  }
}

/** The permission that the session lacks to read the handlers. */
const unread = (): 'project' | 'build' | undefined =>
  (['project', 'build'] as const).find((type) => !may(type, 'read'))

/** The functions of the deployed builds that events start, of all projects; none without the rights to read them. */
export const useHandlers = (): LoadedHandlers => {
  const progress = useSignal<Progress | null>(null)
  const loaded = useLoaded(async (signal): Promise<readonly Handler[]> => {
    if (unread()) return []
    const projects = await readAll(
      (query) => api.request('GET /v1/projects', { query, signal }),
      ({ project_id }) => project_id,
    )
    const handlers: Handler[] = []
    let read = 0
    progress.value = { read, of: projects.length }
    await together(projects, async (project) => {
      handlers.push(...(await handlersOf(project, signal)))
      progress.value = { read: ++read, of: projects.length }
    })
    return handlers.sort(
      (a, b) =>
        a.event_type.localeCompare(b.event_type, 'en') ||
        a.project.localeCompare(b.project, 'en') ||
        a.fn.localeCompare(b.fn, 'en'),
    )
  }, [])
  return { ...loaded, progress: loaded.isLoading ? progress.value : null }
}

interface Props {
  readonly handlers: LoadedHandlers
}

const OFFSET = 'handlers_offset'

/** The functions that each type of event starts. */
export const Handlers = ({ handlers: { data, progress, ...loaded } }: Props) => {
  const offset = offsetOf(OFFSET)
  const lacked = unread()
  return (
    <section aria-labelledby="handlers">
      <h2 id="handlers">Handlers</h2>
      {progress && (
        <p class="hint" role="status">
          Reading the functions of {countText(progress.of, 'project')}{' '}
          <progress max={progress.of} value={progress.read} aria-label="Projects that were read" />
        </p>
      )}
      <List
        of={{ ...loaded, data: data && pageOf(data, offset) }}
        offset={OFFSET}
        caption="Functions by the type of their events"
        columns={COLUMNS}
        idOf={({ project, fn }) => `${project} ${fn}`}
        empty={
          lacked ? (
            <Lacking type={lacked} action="read" />
          ) : (
            <Empty command="npx svc deploy">
              No deployed function handles events. Deploy one from its folder:
            </Empty>
          )
        }
      />
    </section>
  )
}

const COLUMNS: readonly Column<Handler>[] = [
  {
    name: 'Event type',
    cell: ({ event_type }) => <a href={linkTo('/events', { event_type })}>{event_type}</a>,
  },
  {
    name: 'Function',
    cell: ({ fn, project }) => (
      <a href={linkTo('/runs', { fn, project })}>
        <Name of={fn} />
      </a>
    ),
  },
  { name: 'Project', cell: ({ project }) => project },
]
