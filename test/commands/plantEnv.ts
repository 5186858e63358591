import { createHash } from 'node:crypto'
import { createEnv } from '../../src/commands/orgs/createEnv.ts'
import { createOrg } from '../../src/commands/orgs/createOrg.ts'
import { createProject } from '../../src/commands/projects/createProject.ts'
import { payloadFields } from '../../src/events/payload.ts'
import type { Plan } from '../../src/events/org.ts'
import type { FunctionSpec } from '../../src/events/project.ts'
import { streamOf } from '../../src/events/streams.ts'
import { buildKey, functionsKey } from '../../src/ports/runtime.ts'
import { newId } from '../../src/ids.ts'
import { callerOf, type openCommands } from './openCommands.ts'

/** The content of a planted zip: nothing unpacks it. */
const ZIP = Buffer.from('z')
const ZIP_HASH = createHash('sha256').update(ZIP).digest('hex')

type Node = Awaited<ReturnType<typeof openCommands>>

/** Creates an environment `dev` of an organization of its own. */
export const plantEnv = async ({ deps, views }: Node, slug: string, plan: Plan = 'self_host') => {
  const cause = { correlation_id: newId() }
  await createOrg(deps, { slug, plan }, cause)
  await views.settled()
  const { env_id } = await createEnv(deps, { org: slug, name: 'dev' }, cause)
  await views.settled()
  return { env_id, caller: callerOf(env_id) }
}

/** Creates a project and uploads a build of it with these functions: the deployed one, or the live one. */
export const plantBuild = async (
  { deps, aggregates, blobs, views }: Node,
  { caller }: Awaited<ReturnType<typeof plantEnv>>,
  {
    name,
    functions = [],
    build_type = 'release',
    project_id = '',
    hash = ZIP_HASH,
    size = ZIP.length,
  }: {
    name: string
    functions?: FunctionSpec[]
    build_type?: 'release' | 'live'
    project_id?: string
    hash?: string
    size?: number
  },
) => {
  const project = project_id === '' ? (await createProject(deps, { name }, caller)).project_id : project_id
  const ref = { build_id: newId(), project_id: project, hash }
  const storage_path = buildKey(ref)
  const kept = await deps.payloads.keepList(functions, (sha256) => functionsKey(storage_path, sha256))
  const build = { ...ref, ...payloadFields('functions', kept) }
  const stream = streamOf.project(project)
  const stored = { size, storage_path, storage_backend: 'disk', build_type } as const
  await blobs.put(stored.storage_path, ZIP)
  await aggregates.projects.handle(
    stream,
    { type: 'UploadBuild', build: { ...build, ...stored } },
    caller.cause,
  )
  if (build_type === 'release')
    await aggregates.projects.handle(stream, { type: 'DeployBuild', build, fence: 0 }, caller.cause)
  await views.settled()
  return build
}
