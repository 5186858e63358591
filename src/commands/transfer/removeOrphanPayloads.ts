import { placeOf } from '../../content/payloads.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'

type Deps = Pick<CommandDeps, 'aggregates' | 'blobs'>

/** Payloads that one sweep may suspect; a later one continues. */
const MOST = 10_000

/**
 * Removes payloads of environments that do not exist: those of an import that was given up before it created its environment, which
 * no retention reaches. A payload is removed only if an earlier sweep had put it into `suspects`, because the import may be in progress.
 * Resolves with their number.
 */
export const removeOrphanPayloads = async (deps: Deps, suspects: Set<string>): Promise<number> => {
  const { blobs } = deps
  const before = new Set(suspects)
  suspects.clear()
  let removed = 0
  let known: { readonly env_id: string; readonly isAbsent: boolean } | undefined
  for await (const { key } of blobs.list('payloads/')) {
    const env_id = placeOf(key)?.env_id
    if (env_id === undefined) continue
    if (known?.env_id !== env_id) known = { env_id, isAbsent: await isAbsent(deps, env_id) }
    if (!known.isAbsent) continue
    if (!before.has(key)) suspects.add(key)
    else if (await isAbsent(deps, env_id)) {
      await blobs.remove(key)
      removed++
    }
    if (suspects.size === MOST) break
  }
  return removed
}

const isAbsent = ({ aggregates }: Deps, env_id: string): Promise<boolean> =>
  aggregates.envs.read(streamOf.env(env_id), ({ status }) => status === 'absent')
