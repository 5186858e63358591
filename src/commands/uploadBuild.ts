import { createReadStream } from 'node:fs'
import { activeProject, buildExists } from '../domain/project.ts'
import { AppError } from '../errors.ts'
import { streamOf } from '../events/streams.ts'
import { buildKey } from '../ports/runtime.ts'
import type { BuildDoc } from '../projections/builds.ts'
import { buildFor } from './buildFor.ts'
import type { Caller, CommandDeps } from './deps.ts'
import { projectFor } from './projectFor.ts'

export interface BuildToUpload {
  /** Id or name. */
  readonly project: string
  /** Path of the zip on the local disk. */
  readonly file: string
  readonly size: number
  /** Hex SHA-256 of the zip, already checked. */
  readonly hash: string
  readonly live: boolean
  /** The caller's own id for the build; repeated uploads with it are one upload. */
  readonly build_id?: string | undefined
}

/**
 * Stores a build, once the sandbox could load it and read its functions. `existed`: the project has this build under the
 * given `build_id` already. Rejects with `bad_request` for a zip that does not load, with `conflict` when the project
 * has another build under the `build_id`.
 */
export const uploadBuild = async (
  deps: Pick<CommandDeps, 'aggregates' | 'views' | 'blobs' | 'payloads' | 'runtime'>,
  { project, file, size, hash, live, build_id: wanted }: BuildToUpload,
  { cause, newId }: Caller,
): Promise<{ build: BuildDoc; existed: boolean }> => {
  const { aggregates, views, blobs, payloads, runtime } = deps
  const { env_id } = cause
  await views.settled('projects')
  const { project_id } = projectFor(views.directory, env_id, project)
  const stream = streamOf.project(project_id)
  const build_id = wanted ?? newId('build')
  const build_type = live ? 'live' : 'release'
  const exists = await aggregates.projects.read(stream, (state) =>
    buildExists(activeProject(state), { build_id, hash, build_type }),
  )
  if (exists) return { build: await buildFor(deps, project_id, build_id), existed: wanted !== undefined }

  const storage_path = buildKey(hash)
  const known = await blobs.head(storage_path)
  if (!known) await blobs.put(storage_path, createReadStream(file))
  const inspection = await runtime.inspect({ env_id, build_id, hash })
  if (!inspection.ok) {
    if (!known) await blobs.remove(storage_path)
    throw new AppError('bad_request', inspection.message)
  }
  const { ref } = await payloads.keep(inspection.functions)
  const { events } = await aggregates.projects.handle(
    stream,
    {
      type: 'UploadBuild',
      build: {
        build_id,
        project_id,
        hash,
        size,
        build_type,
        storage_path,
        storage_backend: blobs.backend,
        ...(ref ? { functions_ref: ref } : { functions: [...inspection.functions] }),
      },
    },
    cause,
  )
  const existed = events.length === 0 && wanted !== undefined
  return { build: await buildFor(deps, project_id, build_id), existed }
}
