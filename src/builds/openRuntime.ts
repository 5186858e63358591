import { isAppError } from '../errors.ts'
import type { Blobs } from '../ports/blobs.ts'
import { BuildCache } from './bundle.ts'
import { prepareChildCode } from '../sandbox/childCode.ts'
import { inspectBuild } from './inspect.ts'
import { DEFAULT_OPTIONS, type SandboxOptions } from '../sandbox/limits.ts'
import { Pool } from '../sandbox/pool.ts'
import type { Runtime } from '../ports/runtime.ts'
import { stripBuild } from './strip.ts'

export interface RuntimeDeps extends Partial<SandboxOptions> {
  readonly blobs: Blobs
  /** For unpacked builds and the code of the children. It is disposable, and processes on one disk may share it. */
  readonly cacheDir: string
  /** Where the code of the children is stored; default `cacheDir`. */
  readonly codeDir?: string
}

const TYPESCRIPT = /(?<!\.d)\.m?ts$/

/** Runs user functions in child processes (DESIGN.md, The functions runtime). */
export const openRuntime = ({ blobs, cacheDir, codeDir = cacheDir, ...overrides }: RuntimeDeps): Runtime => {
  const options: SandboxOptions = { ...DEFAULT_OPTIONS, ...overrides }
  const code = prepareChildCode(codeDir)
  const cache = new BuildCache({
    blobs,
    cacheDir,
    prepare: async (dir, files) => {
      const sources = files.filter(
        (file) => TYPESCRIPT.test(file) && !file.split('/').includes('node_modules'),
      )
      if (sources.length > 0) await stripBuild(dir, sources, code, options)
    },
  })
  const pool = new Pool({ options, code, unpacked: (build) => cache.ensure(build) })
  return {
    invoke: (invocation) => pool.invoke(invocation),
    inspect: async (build) => {
      try {
        return await inspectBuild(await cache.ensure(build), code, options)
      } catch (error) {
        if (isAppError(error, 'bad_request')) return { ok: false, message: error.message }
        throw error
      }
    },
    prewarm: (build) => pool.prewarm(build),
    get children() {
      return pool.children
    },
    close: () => pool.close(),
  }
}
