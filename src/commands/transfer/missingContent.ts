import { onOneLine } from '../../logger.ts'
import { AppError } from '../../errors.ts'
import { everyDoc } from '../../loops/everyDoc.ts'
import { buildKey } from '../../ports/runtime.ts'
import { type BuildDoc, buildDocId } from '../../projections/builds.ts'
import type { CommandDeps } from '../deps.ts'

/**
 * Rejects with `conflict` if a file or the zip of a build is not among the exported blobs: an import could not replace it.
 * Payloads are not checked, because they may have expired before their facts.
 */
export const demandContent = async (
  { views, blobs }: Pick<CommandDeps, 'views' | 'blobs'>,
  { env_id, exported }: { readonly env_id: string; readonly exported: ReadonlySet<string> },
): Promise<void> => {
  const equal = { env_id }
  // Content that was added meanwhile is not exported. Its fact ends the export.
  const isMissing = async (key: string) => !exported.has(key) && (await blobs.head(key)) === null
  for await (const { path, key } of everyDoc(views.files, { id: 'file_id', equal, sort: 'path' }))
    if (await isMissing(key))
      throw missing(`The content of the file ${onOneLine(path)}`, { key, thing: 'file' })
  const idOf = ({ project_id, build_id }: BuildDoc): string => buildDocId(project_id, build_id)
  for await (const build of everyDoc(views.builds, { id: idOf, equal, sort: 'order' })) {
    const key = buildKey(build)
    if (await isMissing(key)) throw missing(`The zip of build ${build.build_id}`, { key, thing: 'build' })
  }
}

const missing = (what: string, { key, thing }: { readonly key: string; readonly thing: string }): AppError =>
  new AppError(
    'conflict',
    `${what} is missing in the blobs: restore ${key}, or delete the ${thing}, and repeat the export`,
  )
