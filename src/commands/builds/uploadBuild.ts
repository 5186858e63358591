import { createReadStream } from 'node:fs'
import { activeProject, buildExists } from '../../domain/project.ts'
import { AppError, isAppError } from '../../errors.ts'
import { payloadFields } from '../../events/payload.ts'
import { streamOf } from '../../events/streams.ts'
import { buildKey, type BuildRef } from '../../ports/runtime.ts'
import type { BuildDoc } from '../../projections/builds.ts'
import { buildFor } from './buildFor.ts'
import type { Caller, CommandDeps } from '../deps.ts'
import { discardContent } from '../files/discardContent.ts'
import { projectFor } from '../projects/projectFor.ts'

export interface BuildToUpload {
  /** Id or name. */
  readonly project: string
  /** Path of the zip on the local disk. */
  readonly file: string
  readonly size: number
  /** Hex SHA-256 of the zip, already checked. */
  readonly hash: string
  readonly live: boolean
  /** Aborts when the client has left: the upload is then abandoned. */
  readonly signal?: AbortSignal | undefined
  /** An id that the caller chose; a repeated upload with it returns the existing build. */
  readonly build_id?: string | undefined
}

/**
 * Loads a build in the sandbox, reads its functions and stores it (SPEC.md, Builds). Nothing of a refused build is kept. `existed`: the project already has
 * this build with the given `build_id`. Rejects with `not_found`, with `bad_request` for a zip that does not load, or
 * with `conflict` when the `build_id` belongs to another build of the project.
 */
export const uploadBuild = async (
  deps: Pick<CommandDeps, 'aggregates' | 'views' | 'blobs' | 'payloads' | 'runtime'>,
  { project, file, size, hash, live, signal, build_id: wanted }: BuildToUpload,
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

  const ref = { project_id, build_id, hash }
  const inspection = await runtime.inspect({ env_id, ...ref }, { file, signal })
  if (!inspection.ok) throw new AppError('bad_request', inspection.message)
  const functions = await payloads.keep([...inspection.functions])
  const storage_path = buildKey(ref)
  try {
    await blobs.put(storage_path, createReadStream(file))
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
          ...payloadFields('functions', functions),
        },
      },
      cause,
    )
    const existed = events.length === 0 && wanted !== undefined
    return { build: await buildFor(deps, project_id, build_id), existed }
  } catch (error) {
    if (isAppError(error) && error.status < 500) await discardRefused(deps, ref)
    throw error
  }
}

/** Removes the zip of an upload that the log refused, unless a concurrent upload of the same build was accepted. */
const discardRefused = async (
  { aggregates, blobs, runtime }: Pick<CommandDeps, 'aggregates' | 'blobs' | 'runtime'>,
  { project_id, build_id, hash }: Omit<BuildRef, 'env_id'>,
): Promise<void> => {
  const accepted = await aggregates.projects.read(
    streamOf.project(project_id),
    (state) => state.status === 'active' && state.builds.get(build_id)?.hash === hash,
  )
  if (accepted) return
  await discardContent(blobs, buildKey({ project_id, build_id, hash }))
  await runtime.forget({ hash })
}
