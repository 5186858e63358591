import { AppError, isAppError } from '../errors.ts'
import type { Blobs } from '../ports/blobs.ts'
import { BuildCache } from './buildCache.ts'
import { prepareChildCode } from '../sandbox/childCode.ts'
import { inspectBuild } from './inspect.ts'
import { DEFAULT_OPTIONS, type SandboxOptions } from '../sandbox/limits.ts'
import { sourcesOf } from '../sandbox/namespaces.ts'
import { Pool } from '../sandbox/pool.ts'
import { buildKey, type BuildRef, type Inspection, type Runtime } from '../ports/runtime.ts'
import { openToChildren } from './openToChildren.ts'
import { NextChild } from './nextChild.ts'
import { stripBuild } from './strip.ts'
import { TaskTurns } from './taskTurns.ts'

export interface RuntimeDeps extends Partial<SandboxOptions> {
  readonly blobs: Blobs
  /** For unpacked builds and the code of the children. It is disposable and belongs to one process. */
  readonly cacheDir: string
  /** Where the code of the children is stored; default `cacheDir`. */
  readonly codeDir?: string
  /** Megabytes of unpacked builds in `cacheDir`; default: no limit. */
  readonly cacheMb?: number
  /** The organization of an environment; default: each environment is its own. */
  readonly ownerOf?: (env_id: string) => string
}

/** Builds that are unpacked, stripped or inspected at the same time: each may take a child and 600 MB of disk. */
const TASKS = { places: 2, waiting: 64 }

/** Runs user functions in child processes (DESIGN.md, The functions runtime). */
export const openRuntime = ({
  blobs,
  cacheDir,
  codeDir = cacheDir,
  cacheMb = Infinity,
  ownerOf = (env_id) => env_id,
  ...overrides
}: RuntimeDeps): Runtime => {
  const options: SandboxOptions = { ...DEFAULT_OPTIONS, ...overrides }
  const code = prepareChildCode(codeDir)
  const turns = new TaskTurns(TASKS)
  const closing = new AbortController()
  const cache = new BuildCache({
    blobs,
    cacheDir,
    maxBytes: cacheMb * (1 << 20),
    ownerOf,
    isUsed: (hash) => pool.uses(hash),
    prepare: async (dir, files, signal = closing.signal) => {
      if (options.users) await openToChildren(dir, files, cacheDir)
      const sources = sourcesOf(files).filter((file) => file.endsWith('ts'))
      if (sources.length > 0) await stripBuild(dir, sources, { code, options, signal })
    },
  })
  cache.open()
  const next = new NextChild({
    code,
    options,
    newFolder: async () => {
      const folder = await cache.newFolder()
      if (options.users) await openToChildren(folder.files, [], cacheDir)
      return folder
    },
    hasPlace: () => turns.running < TASKS.places,
  })
  /** Builds that runs wait for, by the key of their zip: all lanes of a build share one turn. */
  const preparing = new Map<string, Promise<string>>()
  const unpacked = async (build: BuildRef): Promise<string> => {
    if (await cache.has(build.hash)) return cache.ensure(build)
    const zip = buildKey(build)
    const known = preparing.get(zip)
    if (known) return known
    const { signal } = closing
    const dir = turns
      .run(ownerOf(build.env_id), () => cache.ensure(build), { signal, forRun: true })
      .finally(() => preparing.delete(zip))
    preparing.set(zip, dir)
    return dir
  }
  const pool = new Pool({ options, code, unpacked })
  return {
    invoke: (invocation) => pool.invoke(invocation),
    inspect: async (build, { file, signal: left }) => {
      const signal = left ? AbortSignal.any([left, closing.signal]) : closing.signal
      const inspection = Promise.withResolvers<Inspection>()
      const inspect = async () => {
        const ready = next.take()
        try {
          const admitted = await cache.admit(
            build,
            file,
            (candidate) => inspectBuild(candidate, { code, options, signal, child: ready?.child }),
            { signal, folder: ready?.folder },
          )
          inspection.resolve(admitted)
        } finally {
          ready?.child.kill() // it runs on if the build was refused before it was loaded
          await ready?.child.ended // it counts until then, but its result is complete
          next.prepare()
        }
      }
      turns.run(ownerOf(build.env_id), inspect, { signal }).catch(inspection.reject)
      try {
        return await inspection.promise
      } catch (error) {
        if (isAppError(error, 'bad_request')) return { ok: false, message: error.message }
        throw error
      }
    },
    forget: ({ hash }) => cache.forget(hash),
    forgetUnneeded: (isNeeded) =>
      cache.forgetUnneeded(async (build) => {
        if (await isNeeded(build)) return true
        pool.retire(build.hash)
        return false
      }),
    prewarm: (build) => pool.prewarm(build),
    isFullFor: (org_id) => pool.isFullFor(org_id),
    get children() {
      return pool.children + turns.running + next.children
    },
    get pool() {
      return pool.reading
    },
    close: async () => {
      closing.abort(new AppError('unavailable', 'The runtime was closed'))
      await pool.close()
      await turns.idle()
      await next.close()
    },
  }
}
