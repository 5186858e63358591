import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import Type, { type Static } from 'typebox'
import { pastOf } from '../../commands/audit/past.ts'
import { buildFor } from '../../commands/builds/buildFor.ts'
import { deleteBuild } from '../../commands/builds/deleteBuild.ts'
import { openZip } from '../../commands/builds/openZip.ts'
import { deployBuild } from '../../commands/builds/deployBuild.ts'
import { uploadBuild, type UploadedBuild } from '../../commands/builds/uploadBuild.ts'
import { AppError } from '../../errors.ts'
import { sendContent } from '../http/jsonReply.ts'
import { leaving } from '../http/leaving.ts'
import type { BuildDoc } from '../../projections/builds.ts'
import { type Ask, item, none, own, route } from '../route.ts'
import { AsOf, AsOfPageQuery, AsOfQuery, listPast, pastProjectOf } from '../asOf.ts'
import { listOf, pageQuery } from '../paging.ts'
import { fieldsOf } from '../present/fieldsOf.ts'
import { presentFunction } from '../present/function.ts'
import { Build, BuildOfEnv, BuildUpload, DeployedBuild } from '../schemas.ts'
import { byProject, projectOf } from './projects.ts'
import { HASH_PATTERN } from '../schemas/patterns.ts'
import { readUpload, UploadForm } from './uploadForm.ts'

const HashFilter = Type.String({
  pattern: HASH_PATTERN,
  description: 'Only builds whose zip has this SHA-256 in hex',
})

const tag = 'Builds'
const read = { type: 'build', action: 'read', ...byProject }

const present = (doc: BuildDoc) => fieldsOf(Build, doc)

/** The builds that the project of the path had. */
const pastBuilds = async (
  ask: Pick<Ask<{ project: string }>, 'deps' | 'credential' | 'params'>,
  as_of: string,
): Promise<readonly BuildDoc[]> => {
  const { past, project } = await pastProjectOf(ask, as_of, 'build')
  return past.builds(project)
}

/** The newest past build for which `is` holds. */
const pastBuild = async (
  ask: Ask<{ project: string }>,
  as_of: string,
  is: (build: BuildDoc) => boolean,
  what: string,
): Promise<BuildDoc> => {
  const found = (await pastBuilds(ask, as_of)).filter(is).sort((a, b) => (a.order < b.order ? 1 : -1))
  if (!found[0]) throw new AppError('not_found', `The project had no ${what} then`)
  return found[0]
}

/** The build that the path names. */
const buildOf = async (ask: Ask<{ project: string; build_id: string }>): Promise<BuildDoc> => {
  await ask.deps.views.settled('builds')
  return buildFor(ask.deps, projectOf(ask).project_id, ask.params.build_id)
}

/** The newest build of the project with these fields. */
const newest = async (
  ask: Ask<{ project: string }>,
  equal: Record<string, string | boolean>,
  what: string,
): Promise<BuildDoc> => {
  const { views } = ask.deps
  await views.settled('builds')
  const { project_id } = projectOf(ask)
  const { items } = await views.builds.find({
    equal: { project_id, ...equal },
    sort: 'order',
    descending: true,
    limit: 1,
    offset: 0,
  })
  if (!items[0]) throw new AppError('not_found', `The project has no ${what} build`)
  return items[0]
}

type Upload = Static<typeof BuildUpload>

const presentUpload = ({ build, functions, ignored = [], warnings = [] }: UploadedBuild): Upload => {
  const { build_id, project_id, hash, size, storage_path, storage_backend, created_at } = build
  return {
    build_id,
    project_id,
    hash,
    size,
    storage_path,
    storage_backend,
    created_at,
    functions: functions.map(presentFunction),
    ignored: [...ignored],
    warnings: [...warnings],
  }
}

/** Receives and stores a build, and counts it as an upload of the organization meanwhile. */
const upload = async (ask: Ask<{ project: string }>): Promise<{ build: Upload; existed: boolean }> => {
  const { views, openCounts } = ask.deps
  await views.settled('builds')
  const { project_id } = projectOf(ask)
  return openCounts.during(ask.credential.env_id, 'buildUploads', () => received(ask, project_id))
}

/** Reads the form and uploads the build, once for an `Idempotency-Key`. */
const received = async (
  ask: Ask<{ project: string }>,
  project: string,
): Promise<{ build: Upload; existed: boolean }> => {
  const scratch = await mkdtemp(join(ask.deps.scratchDir, 'form-'))
  try {
    const form = await readUpload(ask.ctx, scratch)
    const { hash, live, build_id = null } = form
    return await ask.once([project, hash, live, build_id], async (newId) => {
      const wanted = { project, ...form, signal: leaving(ask.ctx) }
      const uploaded = await uploadBuild(ask.deps, wanted, { ...ask.caller, newId })
      return { build: presentUpload(uploaded), existed: uploaded.existed }
    })
  } finally {
    await rm(scratch, { recursive: true, force: true })
  }
}

export const buildRoutes = [
  route({
    method: 'GET',
    path: '/v1/builds',
    operationId: 'listBuilds',
    summary: 'List all builds of the environment',
    tag,
    needs: { type: 'build', action: 'read' },
    query: AsOfPageQuery,
    reply: { kind: 'list', schema: BuildOfEnv },
    handle: async ({ query: { as_of, ...page }, credential: { env_id }, deps }) => {
      const named = (nameOf: (project_id: string) => string | undefined) => (build: BuildDoc) => ({
        ...present(build),
        project_name: nameOf(build.project_id) ?? '',
      })
      if (as_of !== undefined) {
        const past = await pastOf(deps, as_of)
        const projects = new Map((await past.projects(env_id)).map((each) => [each.project_id, each.name]))
        return listPast(
          await past.builds({ env_id }),
          page,
          named((id) => projects.get(id)),
        )
      }
      const { views } = deps
      return listOf(
        views,
        'builds',
        { equal: { env_id }, ...page },
        named((id) => views.directory.project(env_id, id)?.name),
      )
    },
  }),

  route({
    method: 'GET',
    path: '/v1/projects/:project/builds',
    operationId: 'listProjectBuilds',
    summary: 'List the builds of a project',
    tag,
    needs: read,
    query: pageQuery({ hash: Type.Optional(HashFilter), ...AsOf }),
    reply: { kind: 'list', schema: Build },
    handle: async (ask) => {
      const { views } = ask.deps
      const { as_of, hash: given, ...page } = ask.query
      const hash = given?.toLowerCase()
      if (as_of !== undefined) {
        const past = await pastBuilds(ask, as_of)
        return listPast(hash === undefined ? past : past.filter((each) => each.hash === hash), page, present)
      }
      await views.settled('projects')
      const { project_id } = projectOf(ask)
      const equal = { project_id, ...(hash !== undefined && { hash }) }
      return listOf(views, 'builds', { equal, ...page }, present)
    },
  }),

  route({
    method: 'POST',
    path: '/v1/projects/:project/builds',
    operationId: 'uploadBuild',
    summary: 'Upload a build',
    description:
      'The zip is checked and loaded once in the sandbox. A build that does not load is refused with 400 and your ' +
      'file and line, and so is one without functions. If the project has the same build under the `build_id` already, the reply is 200 with ' +
      '`X-Build-Exists: true`; if it has another build under it, the reply is 409.',
    tag,
    needs: { type: 'build', action: 'create', ...byProject },
    form: UploadForm,
    errors: ['quota_exceeded', 'rate_limit_exceeded', 'unavailable'],
    reply: {
      kind: 'item',
      status: 201,
      schema: BuildUpload,
      also: {
        status: 200,
        description: 'The project already has this build',
        headers: { 'X-Build-Exists': { schema: { const: 'true' } } },
      },
    },
    handle: async (ask) => {
      const { build, existed } = await upload(ask)
      return existed ? item(build, 200, { 'X-Build-Exists': 'true' }) : item(build, 201)
    },
  }),

  route({
    method: 'GET',
    path: '/v1/projects/:project/builds/deployed',
    operationId: 'getDeployedBuild',
    summary: 'Get the deployed build',
    tag,
    needs: read,
    query: AsOfQuery,
    reply: { kind: 'item', schema: Build },
    handle: async (ask) => {
      const { as_of } = ask.query
      const build =
        as_of === undefined
          ? await newest(ask, { deployed: true }, 'deployed')
          : await pastBuild(ask, as_of, ({ deployed }) => deployed, 'deployed build')
      return item(present(build))
    },
  }),

  route({
    method: 'GET',
    path: '/v1/projects/:project/builds/live',
    operationId: 'getLiveBuild',
    summary: 'Get the live (development) build',
    tag,
    needs: read,
    query: AsOfQuery,
    reply: { kind: 'item', schema: Build },
    handle: async (ask) => {
      const { as_of } = ask.query
      const build =
        as_of === undefined
          ? await newest(ask, { build_type: 'live' }, 'live')
          : await pastBuild(ask, as_of, ({ build_type }) => build_type === 'live', 'live build')
      return item(present(build))
    },
  }),

  route({
    method: 'GET',
    path: '/v1/projects/:project/builds/:build_id',
    operationId: 'getProjectBuild',
    summary: 'Get a build',
    tag,
    needs: read,
    query: AsOfQuery,
    reply: { kind: 'item', schema: Build },
    handle: async (ask) => {
      const { as_of } = ask.query
      const { build_id } = ask.params
      const build =
        as_of === undefined
          ? await buildOf(ask)
          : await pastBuild(ask, as_of, (each) => each.build_id === build_id, `build ${build_id}`)
      return item(present(build))
    },
  }),

  route({
    method: 'GET',
    path: '/v1/projects/:project/builds/:build_id/download',
    operationId: 'downloadBuild',
    summary: 'Download a build',
    tag,
    needs: read,
    reply: { kind: 'bytes', type: 'application/zip', description: 'The uploaded zip, unchanged' },
    handle: async (ask) => {
      const build = await buildOf(ask)
      const content = await openZip(ask.deps, build)
      ask.ctx.attachment(`${build.build_id}.zip`)
      ask.ctx.type = 'application/zip'
      sendContent(ask.ctx, content)
      return own
    },
  }),

  route({
    method: 'DELETE',
    path: '/v1/projects/:project/builds/:build_id',
    operationId: 'deleteBuild',
    summary: 'Delete a build',
    description:
      'Deletes the build and its zip, which then no longer counts as storage. Its runs that have not begun fail. The ' +
      'deployed build is refused with 409. Of live builds, the service keeps the newest five and deletes older ones itself.',
    tag,
    needs: { type: 'project', action: 'update', ...byProject },
    errors: ['conflict'],
    reply: { kind: 'none' },
    handle: async ({ params, deps, caller }) => {
      await deleteBuild(deps, params, caller)
      return none
    },
  }),

  route({
    method: 'POST',
    path: '/v1/projects/:project/builds/:build_id/deploy',
    operationId: 'deployBuild',
    summary: 'Deploy a build',
    description:
      'The build replaces the deployed build of the project. A webhook that another project of the environment ' +
      'serves is refused with 409. `changes` lists the functions that were added, removed or changed.',
    tag,
    needs: { type: 'build', action: 'execute', ...byProject },
    errors: ['quota_exceeded'],
    reply: { kind: 'item', schema: DeployedBuild },
    handle: async ({ params, deps, caller }) => {
      const { build, changes, warnings } = await deployBuild(deps, params, caller)
      return item({ ...present(build), changes, warnings })
    },
  }),
]
