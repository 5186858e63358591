import { signal } from '@preact/signals'
import type { ComponentType } from 'preact'
import { useEffect } from 'preact/hooks'
import type { Project } from '../../client/index.ts'
import { api } from '../frame/api.ts'
import { type Loaded, useLoaded } from '../frame/load.ts'
import { useReturn } from '../frame/repeat.ts'
import { param, setQuery } from '../frame/router.ts'
import { may, refusalOf } from '../frame/session.ts'
import { Choice } from './fields.tsx'
import { TextFilter } from './filters.tsx'
import { Shown } from './shown.tsx'
import { Empty } from './texts.tsx'

/** The projects that the select shows, at most; others are chosen by the address of the page. */
const MOST = 100

const known = signal<readonly Project[]>([])

/** The projects of the environment, by name. */
export const useProjects = (): Loaded<readonly Project[]> =>
  useLoaded(async (signal) => {
    const { data } = await api.request('GET /v1/projects', { query: { limit: MOST }, signal })
    known.value = data.toSorted((a, b) => a.name.localeCompare(b.name, 'en'))
    return known.value
  }, [])

/** The present name of a project that is given by its name or id. */
export const nameOf = (given: string, { data }: Pick<Loaded<readonly Project[]>, 'data'>): string =>
  data?.find(({ project_id }) => project_id === given)?.name ?? given

/** Why the session cannot do something in a project; undefined if it can. A permission may have its name or its id. */
export const refusalIn = (project: string, type: string, action: string): string | undefined => {
  const found = known.value.find(({ name, project_id }) => project === name || project === project_id)
  const paths = found ? [found.name, found.project_id] : [project]
  return paths.some((path) => may(type, action, path)) ? undefined : refusalOf(type, action, project)
}

const choose = (project: string, replace = false): void => setQuery({ project, offset: '' }, { replace })

/** The project that a page is about: the parameter `project`. Without one, the first project is chosen. */
const ProjectChoice = () =>
  may('project', 'read') ? (
    <Select />
  ) : (
    <div class="filters">
      <TextFilter label="Project" name="project" hint="Its name" />
    </div>
  )

/** Shown instead of a project that is deleted. */
export const NoProject = ({ project }: { readonly project: string }) => (
  <Empty>
    There is no project <code>{project}</code> in this environment.{' '}
    <button type="button" class="plain" onClick={() => choose('')}>
      Choose another
    </button>
  </Empty>
)

interface PageProps {
  readonly name: string
  readonly content: ComponentType<{ readonly project: string }>
}

/** A page about one project, given by its name or id. */
export const ProjectPage = ({ name, content: Content }: PageProps) => {
  const project = param('project')
  return (
    <>
      <h1>{name}</h1>
      <ProjectChoice />
      {project && <Content key={project} project={project} />}
    </>
  )
}

const Select = () => {
  const projects = useProjects()
  useReturn(projects.reload)
  const chosen = nameOf(param('project'), projects)
  const names = projects.data?.map(({ name }) => name) ?? []
  const first = names[0]
  useEffect(() => {
    if (chosen === '' && first !== undefined) choose(first, true)
  }, [chosen, first])
  return (
    <Shown of={projects}>
      {() =>
        names.length === 0 && chosen === '' ? (
          <Empty command="npx svc deploy">There is no project. Deploy one from its folder:</Empty>
        ) : (
          <div class="filters">
            <Choice
              label="Project"
              value={chosen}
              options={[...new Set([...names, chosen])].map((name) => [name, name] as const)}
              onChange={choose}
            />
          </div>
        )
      }
    </Shown>
  )
}
