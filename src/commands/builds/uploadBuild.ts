import { createReadStream } from 'node:fs'
import { activeProject, buildExists } from '../../domain/project.ts'
import { AppError } from '../../errors.ts'
import { payloadFields } from '../../events/payload.ts'
import { streamOf } from '../../events/streams.ts'
import { buildKey } from '../../ports/runtime.ts'
import type { BuildDoc } from '../../projections/builds.ts'
import { buildFor } from './buildFor.ts'
import type { Caller, CommandDeps } from '../deps.ts'
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
  /** An id that the caller chose; a repeated upload with it returns the existing build. */
  readonly build_id?: string | undefined
}

/**
 * Loads a build in the sandbox, reads its functions and stores it (SPEC.md, Builds). `existed`: the project already has
 * this build with the given `build_id`. Rejects with `not_found`, with `bad_request` for a zip that does not load, or
 * with `conflict` when the `build_id` belongs to another build of the project.
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
  const known = await storeZip(deps, { storage_path, file })
  const inspection = await runtime.inspect({ env_id, project_id, build_id, hash })
  if (!inspection.ok) {
    if (!known) await removeZip(deps, { storage_path, file, hash })
    throw new AppError('bad_request', inspection.message)
  }
  const functions = await payloads.keep([...inspection.functions])
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
  await storeZip(deps, { storage_path, file }) // a refused upload of the same bytes may have removed it meanwhile
  const existed = events.length === 0 && wanted !== undefined
  return { build: await buildFor(deps, project_id, build_id), existed }
}

interface Zip {
  readonly storage_path: string
  readonly file: string
}

/** Stores the zip unless it is already stored. Resolves with whether it already was. */
const storeZip = async (
  { blobs }: Pick<CommandDeps, 'blobs'>,
  { storage_path, file }: Zip,
): Promise<boolean> => {
  if (await blobs.head(storage_path)) return true
  await blobs.put(storage_path, createReadStream(file))
  return false
}

/** Removes the zip of a refused upload, unless an accepted build has the same bytes. */
const removeZip = async (
  deps: Pick<CommandDeps, 'blobs' | 'views'>,
  { hash, ...zip }: Zip & { readonly hash: string },
): Promise<void> => {
  if (await isAccepted(deps, hash)) return
  await deps.blobs.remove(zip.storage_path)
  if (await isAccepted(deps, hash)) await storeZip(deps, zip) // accepted after the first look
}

const isAccepted = async ({ views }: Pick<CommandDeps, 'views'>, hash: string): Promise<boolean> => {
  await views.settled('builds')
  const { items } = await views.builds.find({ equal: { hash }, sort: 'order', limit: 1, offset: 0 })
  return items.length > 0
}
