import { clock } from '../../clock.ts'
import type { NameHolder } from '../../domain/name.ts'
import type { ErrorCode } from '../../errors.ts'
import type { Cause } from '../../events/event.ts'
import { timeOf } from '../../ids.ts'
import type { CommandDeps } from '../deps.ts'

/** Age in milliseconds at which a reservation without a result is void, because its node died. */
export const STALE_MS = 10_000
/** The clock of another node may be ahead by this. A reservation with a later time was made while a clock was wrong. */
const MOST_AHEAD_MS = 60 * 60 * 1000

/** State of a reservation. In the state `void`, its holder can no longer get the name through it. */
export type ReservationState = 'in use' | 'void'

/** Whether the reservation of a name has no result any more. */
export const isStale = ({ holder, reserved_at }: NameHolder): boolean =>
  hasNoResult(reserved_at === undefined ? timeOf(holder) : Date.parse(reserved_at))

/** Whether a reservation of this time has no result because its node died, or was too slow. */
export const hasNoResult = (reservedMs: number): boolean => {
  const ageMs = clock.now() - reservedMs
  return ageMs >= STALE_MS || ageMs < -MOST_AHEAD_MS
}

/**
 * Reserves a unique name for `by`. It takes over a reservation that is void, or whose node died before it created the
 * holder. Rejects with the code `taken` when another holder has the name.
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
    by: NameHolder
    taken: ErrorCode
    /** State of the reservation of another holder. */
    stateOf: (held: NameHolder) => Promise<ReservationState>
  },
  cause: Cause,
): Promise<void> => {
  const held = await aggregates.names.read(stream, (state) => state.held)
  const other = held && held.holder !== reservation.by.holder ? held : undefined
  const isGone = other && (await stateOf(other)) === 'void'
  await aggregates.names.handle(
    stream,
    { type: 'ReserveName', ...reservation, ...(isGone && { gone: other }) },
    cause,
  )
}
