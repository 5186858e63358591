import { projectName, readSettings } from '../bundle/settings.ts'
import type { Build } from '../client/api.ts'
import { AppError } from '../errors.ts'
import { changesText, warningsText } from './bundleTexts.ts'
import { command } from './command.ts'
import { buildsOf } from './deployBundle.ts'
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
    const build_id = options.to ?? predecessorIn(await buildsOf(client, project, { signal }), project)
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

/** A deployment changes the deployed build and the one that it replaces at the same time. */
const predecessorIn = (builds: readonly Build[] | null, project: string): string => {
  if (!builds) throw new AppError('not_found', `No project ${project}`)
  const current = builds.find(({ deployed }) => deployed)
  if (!current) throw new AppError('conflict', `${project} has no deployed build; deploy one with svc deploy`)
  const before = builds.find(
    ({ deployed, build_type, updated_at }) =>
      !deployed && build_type === 'release' && updated_at === current.updated_at,
  )
  if (before) return before.build_id
  throw new AppError('conflict', `${project} has no build before the deployed one; name one with --to`)
}
