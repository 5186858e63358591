import { isoOf } from '../../clock.ts'
import { everyDoc } from '../../loops/everyDoc.ts'
import type { CommandDeps } from '../deps.ts'
import { expireUpload } from './expireUpload.ts'

/**
 * Ends the uploads that had expired at `now`, milliseconds since 1970 (SPEC.md, Multipart upload). Resolves with the
 * count.
 */
export const expireUploads = async (
  deps: Parameters<typeof expireUpload>[0] & {
    readonly views: Pick<CommandDeps['views'], 'uploads' | 'settled'>
  },
  { now }: { readonly now: number },
): Promise<number> => {
  const { views } = deps
  await views.settled('uploads')
  const over = { id: 'upload_id', equal: {}, sort: 'expires_at', before: isoOf(now) } as const
  let expired = 0
  for await (const { upload_id, env_id } of everyDoc(views.uploads, over)) {
    if (await expireUpload(deps, { env_id, upload_id })) expired++
  }
  return expired
}
