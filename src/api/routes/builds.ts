import { createReadStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Static } from 'typebox'
import { AppError } from '../../errors.ts'
import { streamOf } from '../../events/streams.ts'
import { type BuildDoc } from '../../projections/builds.ts'
import type { DirectoryProject } from '../../projections/directory.ts'
import { buildKey } from '../../builds/bundle.ts'
import type { ApiDeps } from '../deps.ts'
import { type Ask, item, list, own, route } from '../route.ts'
import { Build, BuildOfEnv, BuildUpload, PageQuery } from '../schemas.ts'
import { projectOf, projectPaths } from './projects.ts'
import { readUpload, type Upload, UploadForm } from './uploadForm.ts'

const tag = 'Builds'
const read = { type: 'build', action: 'read', path: projectPaths }

const present = ({ functions: _, functions_ref: __, order: ___, env_id: ____, ...build }: BuildDoc) => build

const buildOf = async (ask: Ask<{ project: string; build_id: string }>): Promise<BuildDoc> => {
  const { views } = ask.deps
  await views.settled('builds')
  const { project_id } = projectOf(ask)
  const build = await views.builds.get(ask.params.build_id)
  if (build?.project_id !== project_id) throw new AppError('not_found', `No build ${ask.params.build_id}`)
  return build
}

/** The newest build of a project that is deployed, or live. */
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

interface Uploaded {
  readonly build: Static<typeof BuildUpload>
  readonly existed: boolean
}

const uploaded = (build: BuildDoc, existed: boolean): Uploaded => {
  const { build_id, project_id, hash, size, storage_path, storage_backend, created_at } = build
  return {
    build: { build_id, project_id, hash, size, storage_path, storage_backend, created_at },
    existed,
  }
}

const upload = async (ask: Ask<{ project: string }>): Promise<Uploaded> => {
  await ask.deps.views.settled('builds')
  const project = projectOf(ask)
  const scratch = await mkdtemp(join(ask.deps.scratchDir, 'form-'))
  try {
    const form = await readUpload(ask.ctx, scratch)
    const { hash, live, build_id = null } = form
    return await ask.once([project.project_id, hash, live, build_id], (newId) =>
      store(ask, project, form, build_id ?? newId('build')),
    )
  } finally {
    await rm(scratch, { recursive: true, force: true })
  }
}

const store = async (
  { deps, credential, request_id }: Ask<{ project: string }>,
  { project_id, env_id }: DirectoryProject,
  form: Upload,
  build_id: string,
): Promise<Uploaded> => {
  const { aggregates, views, blobs, runtime, payloads } = deps
  const existing = await views.builds.get(build_id)
  if (existing && existing.project_id !== project_id) throw new AppError('conflict', 'build_id: is taken')
  if (existing && existing.hash !== form.hash)
    throw new AppError('conflict', 'build_id: exists with another hash')
  if (existing) return uploaded(existing, form.build_id !== undefined)

  const key = buildKey(form.hash)
  const known = await blobs.head(key)
  if (!known) await blobs.put(key, createReadStream(form.file))
  const inspection = await runtime.inspect({ env_id, build_id, hash: form.hash })
  if (!inspection.ok) {
    if (!known) await blobs.remove(key)
    throw new AppError('bad_request', inspection.message)
  }
  const functions = await payloads.keep(inspection.functions)
  await aggregates.projects.handle(
    streamOf.project(project_id),
    {
      type: 'UploadBuild',
      build: {
        build_id,
        project_id,
        hash: form.hash,
        size: form.size,
        build_type: form.live ? 'live' : 'release',
        storage_path: key,
        storage_backend: blobs.backend,
        ...(functions.ref ? { functions_ref: functions.ref } : { functions: [...inspection.functions] }),
      },
    },
    { env_id, correlation_id: request_id, actor: credential.id },
  )
  await views.settled('builds')
  const build = await views.builds.get(build_id)
  if (!build) throw new AppError('not_found', 'The project was deleted meanwhile')
  return uploaded(build, false)
}

/** Another project of the environment that already serves a webhook of this build. */
const takenWebhook = ({ views }: ApiDeps, build: BuildDoc): string | undefined => {
  for (const { webhook } of build.functions ?? []) {
    const other =
      webhook && views.directory.webhookAt(build.env_id, webhook.method, webhook.service, webhook.path)
    if (other && other.project.project_id !== build.project_id) {
      return `webhook ${webhook.method} ${webhook.service}${webhook.path} is already served by project ${other.project.name}`
    }
  }
  return undefined
}

export const buildRoutes = [
  route({
    method: 'GET',
    path: '/v1/builds',
    summary: 'List all builds of the environment',
    tag,
    needs: { type: 'build', action: 'read' },
    query: PageQuery,
    reply: { kind: 'list', schema: BuildOfEnv },
    handle: async ({ query, credential: { env_id }, deps: { views } }) => {
      await views.settled('builds')
      const { items, total } = await views.builds.find({
        equal: { env_id },
        sort: 'order',
        descending: true,
        ...query,
      })
      const named = items.map((build) => ({
        ...present(build),
        project_name: views.directory.project(env_id, build.project_id)?.name ?? '',
      }))
      return list(named, total, query)
    },
  }),

  route({
    method: 'GET',
    path: '/v1/projects/:project/builds',
    summary: 'List the builds of a project',
    tag,
    needs: read,
    query: PageQuery,
    reply: { kind: 'list', schema: Build },
    handle: async (ask) => {
      const { views } = ask.deps
      await views.settled('builds')
      const { project_id } = projectOf(ask)
      const { items, total } = await views.builds.find({
        equal: { project_id },
        sort: 'order',
        descending: true,
        ...ask.query,
      })
      return list(items.map(present), total, ask.query)
    },
  }),

  route({
    method: 'POST',
    path: '/v1/projects/:project/builds',
    summary: 'Upload a build',
    description:
      'The zip is checked and loaded once in the sandbox; what does not load is a 400 that names your file and line. ' +
      'With a `build_id` that exists the answer is 200 with `X-Build-Exists: true`.',
    tag,
    needs: { type: 'build', action: 'create', path: projectPaths },
    form: UploadForm,
    reply: {
      kind: 'item',
      status: 201,
      schema: BuildUpload,
      also: { status: 200, description: 'The build exists already', headers: { 'X-Build-Exists': 'true' } },
    },
    handle: async (ask) => {
      const { build, existed } = await upload(ask)
      return existed ? item(build, 200, { 'X-Build-Exists': 'true' }) : item(build, 201)
    },
  }),

  route({
    method: 'GET',
    path: '/v1/projects/:project/builds/deployed',
    summary: 'Get the deployed build',
    tag,
    needs: read,
    reply: { kind: 'item', schema: Build },
    handle: async (ask) => item(present(await newest(ask, { deployed: true }, 'deployed'))),
  }),

  route({
    method: 'GET',
    path: '/v1/projects/:project/builds/live',
    summary: 'Get the live (development) build',
    tag,
    needs: read,
    reply: { kind: 'item', schema: Build },
    handle: async (ask) => item(present(await newest(ask, { build_type: 'live' }, 'live'))),
  }),

  route({
    method: 'GET',
    path: '/v1/projects/:project/builds/:build_id',
    summary: 'Get a build',
    tag,
    needs: read,
    reply: { kind: 'item', schema: Build },
    handle: async (ask) => item(present(await buildOf(ask))),
  }),

  route({
    method: 'GET',
    path: '/v1/projects/:project/builds/:build_id/download',
    summary: 'Download a build',
    tag,
    needs: read,
    reply: { kind: 'bytes', type: 'application/zip', description: 'The zip, as it was uploaded' },
    handle: async (ask) => {
      const build = await buildOf(ask)
      const content = await ask.deps.blobs.get(build.storage_path)
      ask.ctx.attachment(`${build.build_id}.zip`)
      ask.ctx.type = 'application/zip'
      ask.ctx.length = build.size
      ask.ctx.body = content
      return own
    },
  }),

  route({
    method: 'POST',
    path: '/v1/projects/:project/builds/:build_id/deploy',
    summary: 'Deploy a build',
    description: 'The project runs on this build from now on; whatever was deployed before no longer is.',
    tag,
    needs: { type: 'build', action: 'execute', path: projectPaths },
    reply: { kind: 'item', schema: Build },
    handle: async (ask) => {
      const { deps, credential, request_id } = ask
      const { build_id, project_id, env_id, hash, functions, functions_ref, ...build } = await buildOf(ask)
      const taken = takenWebhook(deps, {
        build_id,
        project_id,
        env_id,
        hash,
        ...(functions && { functions }),
        ...build,
      })
      if (taken) throw new AppError('conflict', taken)
      await deps.aggregates.projects.handle(
        streamOf.project(project_id),
        {
          type: 'DeployBuild',
          build: {
            build_id,
            project_id,
            hash,
            ...(functions_ref ? { functions_ref } : { functions: [...(functions ?? [])] }),
          },
        },
        { env_id, correlation_id: request_id, actor: credential.id },
      )
      deps.runtime.prewarm({ env_id, build_id, hash })
      return item(present(await buildOf(ask)))
    },
  }),
]
