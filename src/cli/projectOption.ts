import type { Project } from '../client/index.ts'
import { AppError } from '../errors.ts'
import { onOneLine } from '../logger.ts'
import type { Client } from './client.ts'
import type { Invocation } from './command.ts'

export const project = {
  value: 'PROJECT',
  description: 'the project, by name or id (default: that of the folder, else the only one)',
} as const

type Given = Pick<Invocation, 'environment' | 'folderProject'>

/** The project of a command: the given one, that of the folder, or the only one of the environment. */
export const findProject = async (
  service: Client,
  given: string | undefined,
  { folderProject }: Given,
): Promise<string> => {
  const named = given ?? folderProject()
  if (named !== null) return named
  const names = (await Array.fromAsync(service.all<Project>('/v1/projects'))).map(({ name }) => name)
  const [only] = names
  if (only !== undefined && names.length === 1) return only
  throw new AppError(
    'bad_request',
    onOneLine(
      `--project: expected one of ${names.join(', ').slice(0, 500) || 'none, because the environment has no project'}`,
    ),
  )
}

/** The items of a list of the given project, or of all projects, each with the name of its project. */
export const listOfProjects = async <Item>(
  service: Client,
  given: string | undefined,
  pathOf: (project: string) => string,
): Promise<readonly (Item & { readonly project: string })[]> => {
  const names =
    given === undefined
      ? (await Array.fromAsync(service.all<Project>('/v1/projects'))).map(({ name }) => name)
      : [given]
  const lists = names.map(async (name) =>
    (await Array.fromAsync(service.all<Item>(pathOf(name)))).map((item) => ({ ...item, project: name })),
  )
  return (await Promise.all(lists)).flat()
}
