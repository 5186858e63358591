import { projectName, readSettings } from '../bundle/settings.ts'
import type { Build } from '../client/api.ts'
import type { Client } from '../client/client.ts'
import { AppError } from '../errors.ts'
import { changesText, warningsText } from './bundleTexts.ts'
import { command } from './command.ts'
import { buildsOf, ifFound } from './deployBundle.ts'
import { idOf } from './values.ts'

export const rollbackCommand = command({
  name: 'rollback',
  summary: 'deploy the build that was deployed before',
  description:
    'Deploys the build of a project that the deployed one replaced. Running runs continue with the build that they began ' +
    'with. A second rollback undoes the first; --to names any other build.',
  ofEnvironment: true,
  arguments: {
    PROJECT: {
      description: 'the project in the service (default: that of the working directory)',
      count: 'optional',
      parse: projectName,
    },
  },
  options: {
    to: {
      value: 'BUILD_ID',
      description: 'the build to deploy',
      parse: idOf('a build'),
    },
  },
  examples: ['svc rollback', 'svc rollback orders'],
  async run({ args, options, client: connect, signal }) {
    const project = args.PROJECT ?? readSettings('.').project
    const client = connect()
    const build_id = options.to ?? (await ifFound(predecessorOf(client, project, signal)))
    if (build_id === null) throw new AppError('not_found', `No project ${project}`)
    const { changes, warnings, hash } = await client.request(
      'POST /v1/projects/{project}/builds/{build_id}/deploy',
      { path: { project, build_id }, signal },
    )
    return {
      json: { project, build_id, hash, changes, warnings },
      text: `${changesText(changes)}${warningsText(warnings)}${project}: build ${build_id} is deployed\n`,
    }
  },
})

/**
 * The build that the deployed one replaced. A deployment changes both at the same time. Rejects as `buildsOf` does, and with
 * `conflict` if there is no such build.
 */
const predecessorOf = async (
  client: Pick<Client, 'request'>,
  project: string,
  signal: AbortSignal,
): Promise<string> => {
  const releases = new Map<string, string>()
  let current: Build | undefined
  for await (const build of buildsOf(client, project, { signal })) {
    const { build_id, build_type, deployed, updated_at } = build
    if (deployed) current = build
    else if (build_type === 'release' && !releases.has(updated_at)) releases.set(updated_at, build_id)
    const before = current && releases.get(current.updated_at)
    if (before !== undefined) return before
  }
  throw new AppError(
    'conflict',
    current
      ? `${project} has no build before the deployed one; name one with --to`
      : `${project} has no deployed build; deploy one with svc deploy`,
  )
}
