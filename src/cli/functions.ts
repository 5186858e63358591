import { type Client, type ProjectFunction, ServiceError } from '../client/index.ts'
import { AppError } from '../errors.ts'
import { onOneLine } from '../logger.ts'
import { nearest } from '../sandbox/nearestName.ts'
import { FUNCTION_COLUMNS } from './bundleTexts.ts'
import { type CliCommand, command } from './command.ts'
import {
  listOfProjects,
  type OfProject,
  ofProject,
  severalProjects,
  unknownProject,
} from './projectOption.ts'
import type { Column } from './table.ts'

const columns: readonly Column<OfProject<ProjectFunction>>[] = [
  { title: 'PROJECT', of: (each) => each.project, cut: true },
  ...FUNCTION_COLUMNS,
]

const functionsOf = (service: Client, project: string | undefined) =>
  listOfProjects(service, project, {
    page: (name, query) =>
      service.request('GET /v1/projects/{project}/functions', { path: { project: name }, query }),
    idOf: ({ build_id, fn }) => `${build_id} ${fn}`,
  })

/**
 * The project whose function a reference means: that of the folder if it has the function. Undefined if one project at
 * most has it, or if the key cannot read them; then the service finds it. Rejects with `bad_request` if several projects have it.
 */
export const projectWith = async (
  service: Client,
  ref: string,
  folderProject: string | null,
): Promise<string | undefined> => {
  if (folderProject !== null && (await projectsWith(service, ref, folderProject)).length > 0)
    return folderProject
  const names = await projectsWith(service, ref, undefined)
  if (names.length > 1) throw severalProjects(names, ref)
  return undefined
}

/** The projects that have the function, among those that the key can read. */
const projectsWith = async (
  service: Client,
  ref: string,
  project: string | undefined,
): Promise<readonly string[]> => {
  try {
    return (await functionsOf(service, project)).filter(({ fn }) => fn === ref).map((each) => each.project)
  } catch (error) {
    if (error instanceof ServiceError && ['forbidden', 'not_found'].includes(error.code)) return []
    throw error
  }
}

/**
 * The error for a project that does not exist, or for a function that is not deployed; null if both are, or if the key cannot
 * read them.
 */
export const unknownFunction = async (
  service: Client,
  ref: string,
  project: string | undefined,
): Promise<AppError | null> => {
  try {
    return (
      (project === undefined ? null : await unknownProject(service, project)) ??
      missing(ref, project, await functionsOf(service, project))
    )
  } catch (error) {
    if (error instanceof ServiceError) return null
    throw error
  }
}

const missing = (
  ref: string,
  project: string | undefined,
  found: readonly { readonly fn: string }[],
): AppError | null => {
  const refs = found.map(({ fn }) => fn)
  if (refs.includes(ref)) return null
  const likely = nearest(ref, refs)
  const [place, advice] =
    project === undefined
      ? ['', 'run svc functions to list all']
      : [` in the project ${project}`, 'leave --project out, or run svc functions to list all']
  const list = likely === undefined ? advice : `did you mean ${likely}? Run svc functions to list all`
  return new AppError('not_found', onOneLine(`No function ${ref.slice(0, 200)} is deployed${place}; ${list}`))
}

export const functionsCommand: CliCommand = command({
  name: 'functions',
  summary: 'list the functions of the deployed builds',
  description:
    'Lists the functions of the deployed builds, and what starts each of them. All of them can be called.',
  ofEnvironment: true,
  options: { project: ofProject },
  examples: ['svc functions', 'svc functions --project orders --json | jq -r .[].fn'],
  async run({ options, environment, table }) {
    const found = await functionsOf(environment(), options.project)
    return { json: found, text: table(found, columns) }
  },
})
