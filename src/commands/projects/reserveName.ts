import { clock } from '../../clock.ts'
import { type ErrorCode, isAppError } from '../../errors.ts'
import type { Cause } from '../../events/event.ts'
import { timeOf } from '../../ids.ts'
import type { CommandDeps } from '../deps.ts'

/** Age at which a reservation without a result is void: the node that made it died before it went further. */
export const STALE_MS = 10_000

/** What is known about the holder of a reservation. */
export type HolderState = 'exists' | 'deleted' | 'not created'

/**
 * Reserves a unique name for the thing with the id `holder`. A reservation whose holder is deleted, or was never created
 * because its node died, is taken over. Rejects with the code `taken` when another holder has the name.
 */
export const reserveName = async (
  { aggregates }: Pick<CommandDeps, 'aggregates'>,
  {
    stateOf,
    stream,
    ...reservation
  }: {
    /** The stream of the name. */
    stream: string
    name: string
    holder: string
    taken: ErrorCode
    stateOf: (holder: string) => Promise<HolderState>
  },
  cause: Cause,
): Promise<void> => {
  const command = { type: 'ReserveName', ...reservation } as const
  try {
    await aggregates.names.handle(stream, command, cause)
  } catch (error) {
    const other = isAppError(error, reservation.taken) ? error.data['holder'] : undefined
    if (typeof other !== 'string') throw error
    const state = await stateOf(other)
    const mayAppear = state === 'not created' && timeOf(other) > clock.now() - STALE_MS
    if (state === 'exists' || mayAppear) throw error
    await aggregates.names.handle(stream, { ...command, gone: other }, cause)
  }
}
