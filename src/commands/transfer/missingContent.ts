import { hashIn } from '../../content/etag.ts'
import { onOneLine } from '../../logger.ts'
import { AppError } from '../../errors.ts'
import { everyDoc } from '../../loops/everyDoc.ts'
import { buildKey, oldFunctionsKey } from '../../ports/runtime.ts'
import type { CommandDeps } from '../deps.ts'
import { buildsOf, type ExportedContent } from './exportedBlobs.ts'

interface Content {
  readonly what: string
  readonly thing: 'file' | 'build'
  /** Its key in the file. */
  readonly key: string
  /** Its key in the blobs. */
  readonly stored: string
  /** Bytes. */
  readonly size: number
  /** Unknown for files that were uploaded in parts. */
  readonly sha256: string | undefined
}

/**
 * Rejects with `conflict` if a file, or the zip or the list of functions of a build, is not among the exported blobs or has other bytes:
 * an import could not replace it. Payloads are compared with their facts instead, because they may have expired before them.
 * `exported`: each exported blob by its key.
 */
export const demandContent = async (
  { views, blobs }: Pick<CommandDeps, 'views' | 'blobs'>,
  { env_id, exported }: { readonly env_id: string; readonly exported: ReadonlyMap<string, ExportedContent> },
): Promise<void> => {
  const equal = { env_id }
  const demand = async ({ what, thing, key, stored, size, sha256 }: Content): Promise<void> => {
    const found = exported.get(key)
    // Content that was added meanwhile is not exported. Its fact ends the export.
    const isMissing = found === undefined && (await blobs.head(stored)) === null
    const isDamaged =
      found !== undefined && (found.size !== size || (sha256 !== undefined && found.sha256 !== sha256))
    if (isMissing || isDamaged)
      throw new AppError(
        'conflict',
        `${what} is ${isMissing ? 'missing' : 'damaged'} in the blobs: restore ${stored}, or delete the ${thing}, and repeat the export`,
      )
  }
  for await (const { path, key, size, etag } of everyDoc(views.files, {
    id: 'file_id',
    equal,
    sort: 'path',
  })) {
    const what = `The content of the file ${onOneLine(path)}`
    await demand({ what, thing: 'file', key, stored: key, size, sha256: hashIn(etag) })
  }
  for await (const build of buildsOf({ views }, env_id)) {
    const { build_id, storage_path, size, hash, functions_ref: ref } = build
    const key = buildKey(build)
    const [zip, list] = [`The zip of build ${build_id}`, `The list of functions of build ${build_id}`]
    await demand({ what: zip, thing: 'build', key, stored: storage_path, size, sha256: hash })
    if (ref) await demand({ what: list, thing: 'build', ...ref, key: oldFunctionsKey(key), stored: ref.key })
  }
}
