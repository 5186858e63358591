import { hash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { deleteBuild } from '../../../src/commands/builds/deleteBuild.ts'
import { deployBuild } from '../../../src/commands/builds/deployBuild.ts'
import { uploadBuild } from '../../../src/commands/builds/uploadBuild.ts'
import { createProject } from '../../../src/commands/projects/createProject.ts'
import { deleteProject } from '../../../src/commands/projects/deleteProject.ts'
import { updateProject } from '../../../src/commands/projects/updateProject.ts'
import type { FunctionSpec } from '../../../src/events/project.ts'
import type { Scenario } from '../subject.ts'
import { Ids, type ModelNode, type World } from '../world.ts'
import { PATHS, type ProjectsCommand, webhooksIn, type Zip } from './projectsSetup.ts'

const hashOf = (zip: Zip): string => hash('sha256', zip)
const zips = Object.keys(webhooksIn) as Zip[]
const zipOf = (hashed: string): string => zips.find((zip) => hashOf(zip) === hashed) ?? hashed

const functionsOf = (paths: readonly string[]): FunctionSpec[] =>
  paths.map((path) => ({
    ns: 'hooks',
    var: path.slice(1),
    webhook: { service: 's', path, method: 'POST', name: path.slice(1), description: '', auth: 'none' },
  }))

/** Projects and builds of one environment, through the commands of the service. */
export const openProjects = async (world: World): Promise<Scenario<ProjectsCommand>> => {
  const { env_id } = await world.openEnv()
  const ids = new Ids()
  const file = `${world.dir}/zip`
  writeFileSync(file, 'zip')
  for (const zip of zips) {
    const paths = webhooksIn[zip]
    if (paths) world.functionsOf.set(hashOf(zip), functionsOf(paths))
  }

  const perform = async (node: ModelNode, command: ProjectsCommand): Promise<unknown> => {
    const project = ids.of(`${command.project} project`)
    const caller = ids.caller(env_id, command.project)
    switch (command.op) {
      case 'create':
        await createProject(node, { name: command.name }, caller)
        return
      case 'rename':
        await updateProject(node, { project, name: command.name }, caller)
        return
      case 'network':
        await updateProject(node, { project, network: command.network }, caller)
        return
      case 'delete':
        return deleteProject(node, { project }, caller)
      case 'upload': {
        const { zip, live } = command
        const wanted = { project, file, size: 3, hash: hashOf(zip), live, build_id: ids.of(command.build) }
        return { existed: (await uploadBuild(node, wanted, caller)).existed }
      }
      case 'deploy':
        await deployBuild(node, { project, build_id: ids.of(command.build) }, caller)
        return
      case 'deleteBuild':
        return deleteBuild(node, { project, build_id: ids.of(command.build) }, caller)
      default:
        return command satisfies never
    }
  }

  const node = world.node(0)
  for (const [project, name, build, zip] of [
    ['p0', 'zero', 'b0', 'z1'],
    ['p1', 'one', 'b1', 'z3'],
  ] as const) {
    await perform(node, { op: 'create', project, name })
    await perform(node, { op: 'upload', project, build, zip, live: false })
  }
  await perform(node, { op: 'deploy', project: 'p0', build: 'b0' })

  const observe = async ({ views, blobs }: ModelNode): Promise<unknown> => {
    await views.settled()
    const query = { equal: { env_id }, sort: 'order', limit: 100, offset: 0 } as const
    const { items } = await views.projects.find(query)
    const builds = (await views.builds.find(query)).items
    const projectName = (id: string): string => ids.nameOf(id).split(' ')[0] ?? id
    const listed = await Promise.all(
      items.map(async ({ project_id, name, network }) => {
        const known = views.directory.project(env_id, name)
        if (known?.project_id !== project_id) throw new Error(`The directory does not find project ${name}`)
        const own = builds.filter((build) => build.project_id === project_id)
        const described = await Promise.all(
          own.map(async ({ build_id, hash, build_type, deployed, storage_path }) => {
            if (!(await blobs.head(storage_path)))
              throw new Error(`The zip of build ${ids.nameOf(build_id)} is gone`)
            if (deployed !== (known.deployed?.build_id === build_id))
              throw new Error(`The directory has deployed ${known.deployed?.build_id}`)
            const type = build_type === 'live' ? ' live' : ''
            return [ids.nameOf(build_id), `${zipOf(hash)}${type}${deployed ? ' deployed' : ''}`] as const
          }),
        )
        const live = known.live ? ids.nameOf(known.live.build_id) : null
        return [
          projectName(project_id),
          { name, network, builds: Object.fromEntries(described.sort()), live },
        ] as const
      }),
    )
    const webhooks = PATHS.map((path) => {
      const found = views.directory.webhookAt(env_id, 'POST', 's', path)
      return found ? projectName(found.project.project_id) : null
    })
    return { projects: Object.fromEntries(listed.sort()), webhooks }
  }

  return { perform, observe }
}
