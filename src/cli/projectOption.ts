import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { PACKAGE, readPackage } from '../bundle/packageJson.ts'
import { readSettings } from '../bundle/settings.ts'
import { type Client, type Page, type Project, ServiceError } from '../client/index.ts'
import { allPages, type PageQuery } from '../client/lists.ts'
import { isLongWait, pauseOf, wait } from '../client/wait.ts'
import { AppError } from '../errors.ts'
import { onOneLine } from '../logger.ts'
import { nearest } from '../sandbox/nearestName.ts'
import type { Invocation } from './command.ts'

export const project = {
  value: 'PROJECT',
  description: 'the project, by name or id (default: that of the folder, else the only one)',
} as const

/** The option of commands that look at all projects. */
export const ofProject = {
  value: 'PROJECT',
  description: 'only this project, by name or id (default: all)',
} as const

/** An item of a list with the name of its project. */
export type OfProject<Item> = Item & { readonly project: string }

/** The reference of a function. */
export const refOf = ({ ns, var: name }: { readonly ns: string; readonly var: string }): string =>
  `${ns}/${name}`

type Given = Pick<Invocation, 'environment' | 'folderProject'>

/**
 * The project of a command: the given one, that of the folder, or the only one of the environment. A folder with settings of
 * svc never means another project than its own, because a change would be made to that one.
 */
export const findProject = async (
  service: Client,
  given: string | undefined,
  { folderProject }: Given,
): Promise<string> => {
  const named = given ?? folderProject()
  if (named !== null) return named
  const names = (await projectsOf(service)).map(({ name }) => name)
  const own = packageProject('.')
  if (own !== null && names.includes(own)) return own
  if (own !== null && hasSettings('.'))
    throw new AppError(
      'not_found',
      onOneLine(`${expectedOf(names)}; ${own} of this folder is not in the environment: deploy it first`),
    )
  const [only] = names
  if (only !== undefined && names.length === 1) return only
  throw new AppError('bad_request', expectedOf(names))
}

const expectedOf = (names: readonly string[]): string =>
  onOneLine(
    `--project: expected one of ${names.join(', ').slice(0, 500) || 'none, because the environment has no project'}`,
  )

/** The error for a reference that several projects have. */
export const severalProjects = (names: readonly string[], ref: string): AppError =>
  new AppError(
    'bad_request',
    onOneLine(`--project: expected one of ${names.join(', ').slice(0, 500)}, which all have ${ref}`),
  )

/** The project that the package.json of a folder names; null if there is none. */
export const packageProject = (folder: string): string | null => {
  try {
    return existsSync(join(folder, PACKAGE)) ? readSettings(folder).project : null
  } catch {
    return null // it is not deployed from here
  }
}

/** Whether the package.json of a folder has settings of svc. */
const hasSettings = (folder: string): boolean => readPackage(folder)?.fields['svc'] !== undefined

/** The error for a project that the environment does not have; null if it has it. */
export const unknownProject = async (service: Client, given: string): Promise<AppError | null> => {
  const projects = await projectsOf(service)
  if (projects.some(({ name, project_id }) => name === given || project_id === given)) return null
  const names = projects.map(({ name }) => name)
  const likely = nearest(given, names)
  const advice = likely === undefined ? 'name one of them, or leave it out' : `did you mean ${likely}?`
  return new AppError('not_found', onOneLine(`${expectedOf(names)}, got ${given.slice(0, 200)}; ${advice}`))
}

export const projectsOf = (service: Client): Promise<readonly Project[]> =>
  Array.fromAsync(
    allPages(
      (query) => service.request('GET /v1/projects', { query }),
      ({ project_id }) => project_id,
    ),
  )

/** A list that every project has. */
interface ListOfProject<Item> {
  readonly page: (project: string, query: PageQuery) => Promise<Page<Item>>
  readonly idOf: (item: Item) => string
}

/** The items of a list of the given project, or of all projects, each with the name of its project. */
export const listOfProjects = async <Item>(
  service: Client,
  given: string | undefined,
  { page, idOf }: ListOfProject<Item>,
): Promise<readonly OfProject<Item>[]> => {
  const projects = given === undefined ? await projectsOf(service) : [{ project_id: given, name: given }]
  const lists = new Map<string, readonly OfProject<Item>[]>()
  const read = async ({ project_id, name }: Pick<Project, 'project_id' | 'name'>) => {
    const items = await Array.fromAsync(allPages((query) => page(project_id, query), idOf))
    lists.set(
      project_id,
      items.map((item) => ({ ...item, project: name })),
    )
  }
  const refused: (typeof projects)[number][] = []
  const readAtOnce = async (each: (typeof projects)[number]) => {
    try {
      await read(each)
    } catch (error) {
      if (!isBeyondRate(error)) throw error
      refused.push(each)
    }
  }
  await Promise.all(projects.map(readAtOnce))
  for (const each of refused) await withinRate(() => read(each))
  return projects.flatMap(({ project_id }) => lists.get(project_id) ?? [])
}

const isBeyondRate = (error: unknown): error is ServiceError =>
  error instanceof ServiceError && error.code === 'rate_limit_exceeded'

/** Other clients of the organization may use the rate of its plan meanwhile. */
const ATTEMPTS = 5

/** Repeats a request that the rate of the plan refuses, after the time that the refusal names. */
const withinRate = async (request: () => Promise<void>): Promise<void> => {
  for (let failures = 1; ; failures += 1)
    try {
      return await request()
    } catch (error) {
      if (!isBeyondRate(error) || failures === ATTEMPTS || isLongWait(error.retryAfter)) throw error
      await wait(pauseOf(failures, error.retryAfter))
    }
}
