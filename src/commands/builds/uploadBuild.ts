import { withContent } from '../../disk/withContent.ts'
import { activeProject, admitBuild, buildExists, buildsOf, type KnownBuild } from '../../domain/project.ts'
import { AppError, isAppError } from '../../errors.ts'
import { payloadFields } from '../../events/payload.ts'
import type { FunctionSpec } from '../../events/project.ts'
import { streamOf } from '../../events/streams.ts'
import type { Reservation } from '../../content/fileQuota.ts'
import { buildKey, type BuildRef, functionsKey, type Inspection } from '../../ports/runtime.ts'
import type { BuildDoc } from '../../projections/builds.ts'
import { buildFor } from './buildFor.ts'
import { checkFunctions } from './checkFunctions.ts'
import { functionsOf } from './reserveWebhooks.ts'
import type { Caller, CommandDeps } from '../deps.ts'
import { discardContent } from '../files/discardContent.ts'
import { discardBuild } from '../projects/discardBuild.ts'
import { projectFor } from '../projects/projectFor.ts'

type Deps = Pick<CommandDeps, 'aggregates' | 'views' | 'blobs' | 'payloads' | 'runtime' | 'quotas'>

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

/** An uploaded build with what the sandbox found in it; `ignored` and `warnings` are absent if the build existed. */
export interface UploadedBuild extends Omit<Extract<Inspection, { ok: true }>, 'ok'> {
  readonly build: BuildDoc
  /** The project had this build under the given `build_id` already. */
  readonly existed: boolean
}

/**
 * Loads a build in the sandbox, reads its functions and stores it (SPEC.md, Builds). Nothing of a refused build is kept. Rejects with `not_found`, with `bad_request` for a zip that does not load, or
 * with `conflict` when the `build_id` belongs to another build of the project.
 */
export const uploadBuild = async (
  deps: Deps,
  { project, file, size, hash, live, signal, build_id: wanted }: BuildToUpload,
  caller: Caller,
): Promise<UploadedBuild> => {
  const { aggregates, views, runtime, quotas } = deps
  const { env_id } = caller.cause
  await views.settled('projects')
  const { project_id } = projectFor(views.directory, env_id, project)
  const build_id = wanted ?? caller.newId('build')
  const build_type = live ? 'live' : 'release'
  const exists = await aggregates.projects.read(streamOf.project(project_id), (state) =>
    buildExists(activeProject(state), { build_id, hash, build_type }),
  )
  const existing = async (): Promise<UploadedBuild> => {
    const build = await buildFor(deps, project_id, build_id)
    return { build, existed: wanted !== undefined, functions: await functionsOf(deps, build) }
  }
  if (exists) return existing()

  const most = quotas.countsOf(env_id).buildsPerProject
  await aggregates.projects.read(streamOf.project(project_id), (state) =>
    admitBuild(activeProject(state), build_type, most),
  )
  const ref = { project_id, build_id, hash }
  const room = quotas.roomFor(env_id)
  try {
    await room.cover(size)
    const inspection = await runtime.inspect({ env_id, ...ref }, { file, signal })
    if (!inspection.ok) throw new AppError('bad_request', inspection.message)
    const { functions, ok: _, ...remarks } = inspection
    const isNew = await storeBuild(deps, { ...ref, build_type, size, file, functions, room }, caller)
    if (!isNew) return await existing() // another upload may have found other functions
    return { build: await buildFor(deps, project_id, build_id), existed: false, functions, ...remarks }
  } finally {
    room.release()
  }
}

type NewBuild = Omit<BuildRef, 'env_id'> &
  Pick<KnownBuild, 'build_type' | 'size'> & {
    readonly file: string
    readonly functions: readonly FunctionSpec[]
    readonly room: Reservation
  }

/** Stores the zip and then the fact that names it. Resolves with false if the project has the build already. */
const storeBuild = async (
  deps: Deps,
  { project_id, build_id, hash, build_type, size, file, functions, room }: NewBuild,
  { cause }: Caller,
): Promise<boolean> => {
  const { aggregates, views, blobs, payloads, quotas } = deps
  const stream = streamOf.project(project_id)
  const { env_id } = cause
  quotas.checkCount(env_id, 'functionsPerBuild', functions.length)
  const storage_path = buildKey({ project_id, build_id, hash })
  const withZip: Reservation = { ...room, cover: (bytes) => room.cover(size + bytes) }
  const putZip = () => withContent(file, (zip) => blobs.put(storage_path, zip))
  const keyOf = (sha256: string) => functionsKey(storage_path, sha256)
  const putList = () => payloads.keepList(functions, keyOf, withZip)
  const kept = await putList()
  await putZip()
  /**
   * Resolves with false if the project does not have the build. A refused upload of the build may have removed its content, because it did not
   * know of this one. No fact will name the list of this upload if the build has another one: its id is used once.
   */
  const putAgain = async (): Promise<boolean> => {
    const build = await aggregates.projects.read(stream, (state) => buildsOf(state).get(build_id))
    if (build?.hash !== hash) return false
    if (!(await blobs.head(storage_path))) await putZip()
    if (kept.ref && kept.ref.sha256 !== build.list) await discardContent(blobs, kept.ref.key)
    else if (kept.ref && !(await blobs.head(kept.ref.key))) await putList()
    return true
  }
  const before = await aggregates.projects.read(stream, (state) => new Map(buildsOf(state)))
  const build = {
    build_id,
    project_id,
    hash,
    size,
    build_type,
    storage_path,
    storage_backend: blobs.backend,
    ...payloadFields('functions', kept),
  }
  const append = async () => {
    if (build_type === 'live') {
      await views.settled('projects')
      checkFunctions(deps, env_id, { project_id, place: 'live', count: functions.length })
    }
    const most = quotas.countsOf(env_id).buildsPerProject
    return aggregates.projects.handle(stream, { type: 'UploadBuild', build, most }, cause)
  }
  try {
    const { events } = await quotas.inTurn(env_id, append)
    await putAgain()
    for (const event of events) {
      const old = event.type === 'BuildDeleted' ? before.get(event.build_id) : undefined
      if (old) void discardBuild(deps, old) // never rejects, and the caller waits for nothing of it
    }
    return events.length > 0
  } catch (error) {
    const isRefused = isAppError(error) && error.status < 500 // after any other error the fact may have been stored
    if (isRefused && !(await putAgain())) {
      await discardBuild(deps, { hash, storage_path, list: kept.ref?.sha256 })
      await putAgain()
    }
    throw error
  }
}
