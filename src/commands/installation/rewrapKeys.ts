import { clock } from '../../clock.ts'
import { isAppError } from '../../errors.ts'
import { bySystem } from '../../events/actor.ts'
import { streamOf } from '../../events/streams.ts'
import { LostKey, type WrappedKey } from '../../secrets/wrappedKeys.ts'
import type { CommandDeps } from '../deps.ts'
import { readInstallation } from './readInstallation.ts'

type Deps = Pick<CommandDeps, 'aggregates' | 'wrappedKeys'>

/**
 * Completes the rotation of the master key, if one is in progress: wraps every key again, and retires the former master
 * key when it wraps none. Several nodes may do it at once, and a crash at any point is repaired by the next call:
 * R1: a key that is stored during the rotation is wrapped with the current master key (`WrappedKeys.put`).
 * R2: a key that another node destroys while it is wrapped again is removed by the same pass, which visits every key.
 * R3: the former master key is retired only after a pass that found no key wrapped with it.
 * Resolves with the retired master key; null when there was none.
 */
export const rewrapKeys = async (deps: Deps, signal: AbortSignal): Promise<string | null> => {
  const { aggregates, wrappedKeys } = deps
  const state = await readInstallation(deps)
  if (!state?.former) return null
  const { root_key_id } = state
  const [current, former] = [state.current.id, state.former.id]
  if ((await rewrapAll(deps, { former, root_key_id }, signal)) === null) return null
  let rewrapped = 0
  for await (const key of wrappedKeys.list()) if ((await wrappedKeys.wrappedBy(key)) === current) rewrapped++
  await aggregates.installation.handle(
    streamOf.installation,
    { type: 'RetireMasterKey', master_key_id: former, rewrapped, now: clock.iso() }, // R3
    { correlation_id: root_key_id, ...bySystem('master-key') },
  )
  return former
}

/**
 * Wraps the keys again that are wrapped with a retired master key, because they were restored from a backup of before its
 * rotation. Resolves with their number; null if the signal aborted.
 */
export const rewrapRestored = async (
  deps: Deps,
  retired: string,
  signal: AbortSignal,
): Promise<number | null> => {
  const state = await readInstallation(deps)
  return state && rewrapAll(deps, { former: retired, root_key_id: state.root_key_id }, signal)
}

/**
 * Repeats the pass until it finds no key that is wrapped with the former master key. Resolves with the number of those. A damaged
 * key keeps no other from being wrapped: the passes reject with `LostKey` at their end.
 */
const rewrapAll = async (
  deps: Deps,
  { former, root_key_id }: { readonly former: string; readonly root_key_id: string },
  signal: AbortSignal,
): Promise<number | null> => {
  const { wrappedKeys } = deps
  let all = 0
  let lost: LostKey | undefined
  for (let found = -1; found !== 0; all += found) {
    found = 0
    for await (const key of wrappedKeys.list()) {
      if (signal.aborted) return null
      try {
        if (await rewrap(deps, key, former)) found++
      } catch (error) {
        if (!(error instanceof LostKey)) throw error
        lost = error
      }
      if (await isDestroyed(deps, key, root_key_id)) await wrappedKeys.remove(key) // R2
    }
  }
  if (lost) throw lost
  return all
}

/** Resolves with whether the key was wrapped with the former master key. */
const rewrap = async ({ wrappedKeys }: Deps, key: WrappedKey, former: string): Promise<boolean> => {
  if ((await wrappedKeys.wrappedBy(key)) !== former) return false
  try {
    await wrappedKeys.wrapAgain(key)
  } catch (error) {
    if (!isAppError(error, 'not_found')) throw error // removed in the meantime
  }
  return true
}

const isDestroyed = async ({ aggregates }: Deps, key: WrappedKey, root_key_id: string): Promise<boolean> => {
  if (key.kind === 'root') return key.id !== root_key_id // of a first start that another node won
  const { scope, id } = key
  const stream = streamOf.dataKeys(scope.project_id ?? scope.env_id)
  return aggregates.dataKeys.read(stream, ({ destroyed }) => destroyed.includes(id))
}
