import { AppError } from '../../errors.ts'
import type { CommandDeps } from '../deps.ts'
import { readInstallation } from './readInstallation.ts'

/** The master key in use, and the progress of its latest rotation. */
export interface MasterKeyStatus {
  readonly status: 'idle' | 'rotating'
  readonly master_key_id: string
  /** The key that the latest rotation has replaced. */
  readonly previous_master_key_id: string | null
  readonly started_at: string | null
  readonly ended_at: string | null
  /** Keys that are wrapped with the current master key. */
  readonly rewrapped: number
  /** Keys that are still wrapped with the previous one. */
  readonly remaining: number
}

/** Resolves with the master key in use and the progress of its rotation. During a rotation, it reads every wrapped key. */
export const masterKeyStatus = async ({
  aggregates,
  wrappedKeys,
}: Pick<CommandDeps, 'aggregates' | 'wrappedKeys'>): Promise<MasterKeyStatus> => {
  const state = await readInstallation({ aggregates })
  if (state === null) throw new AppError('internal_server_error', 'Expected an installation, got none')
  const { rotation } = state
  const current = state.current.id
  const counts = { rewrapped: rotation?.ended?.rewrapped ?? 0, remaining: 0 }
  const isRotating = rotation !== null && rotation.ended === null
  if (isRotating)
    for await (const key of wrappedKeys.list()) {
      const by = await wrappedKeys.wrappedBy(key)
      if (by === rotation.from) counts.remaining++
      else if (by === current) counts.rewrapped++
    }
  return {
    status: isRotating ? 'rotating' : 'idle',
    master_key_id: current,
    previous_master_key_id: rotation?.from ?? null,
    started_at: rotation?.started_at ?? null,
    ended_at: rotation?.ended?.at ?? null,
    ...counts,
  }
}
