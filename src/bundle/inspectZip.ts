import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspectBuild } from '../builds/inspect.ts'
import { stripBuild } from '../builds/strip.ts'
import { unpack } from '../builds/zip.ts'
import { AppError } from '../errors.ts'
import type { FunctionSpec } from '../events/project.ts'
import { prepareChildCode } from '../sandbox/childCode.ts'
import { DEFAULT_OPTIONS } from '../sandbox/limits.ts'
import { sourcesOf } from '../sandbox/namespaces.ts'

/** What an upload would report. */
export interface InspectedZip {
  readonly functions: readonly FunctionSpec[]
  readonly warnings: readonly string[]
}

/**
 * Reads the functions of a build on this machine, with the checks and in the sandbox of an upload. Rejects with
 * `bad_request` for a build that the service would refuse.
 */
export const inspectZip = async (zip: Uint8Array): Promise<InspectedZip> => {
  const scratch = await mkdtemp(join(tmpdir(), 'svc-build-'))
  try {
    const [zipFile, dir] = [join(scratch, 'build.zip'), join(scratch, 'build')]
    await writeFile(zipFile, zip)
    await mkdir(dir)
    const files = await unpack(zipFile, dir)
    const tools = { code: prepareChildCode(scratch), options: DEFAULT_OPTIONS }
    const typed = sourcesOf(files).filter((file) => file.endsWith('ts'))
    if (typed.length > 0) await stripBuild(dir, typed, tools)
    const inspection = await inspectBuild({ dir, files }, tools)
    if (inspection.ok) return { functions: inspection.functions, warnings: inspection.warnings ?? [] }
    throw new AppError('bad_request', inspection.message)
  } finally {
    await rm(scratch, { recursive: true, force: true })
  }
}
