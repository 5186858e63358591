import { AppError, type ErrorCode } from '../errors.ts'
import type { EventOf } from '../events/index.ts'
import type { Decider } from './decider.ts'

/** Who holds the name; null when it is free. */
interface Reservation {
  readonly holder: string | null
}

export type NameCommand =
  | {
      readonly type: 'ReserveName'
      readonly name: string
      readonly holder: string
      /** The error code when another one holds it. */
      readonly taken: ErrorCode
      /** A holder known to be gone: its reservation is taken over. */
      readonly gone?: string
    }
  | { readonly type: 'ReleaseName'; readonly name: string; readonly holder: string }

/** A unique name is a stream of its own: the append is the check, so two nodes cannot both have it. */
export const name: Decider<Reservation, NameCommand, EventOf<'NameReserved' | 'NameReleased'>> = {
  initial: () => ({ holder: null }),

  decide(command, { holder }) {
    switch (command.type) {
      case 'ReserveName':
        if (holder === command.holder) return []
        if (holder !== null && holder !== command.gone) {
          throw new AppError(command.taken, `name: "${command.name}" is taken`, { data: { holder } })
        }
        return [{ type: 'NameReserved', name: command.name, holder: command.holder }]
      case 'ReleaseName':
        if (holder !== command.holder) return []
        return [{ type: 'NameReleased', name: command.name, holder: command.holder }]
      default:
        return command satisfies never
    }
  },

  evolve(reservation, { event }) {
    if (event.type === 'NameReserved') return { holder: event.holder }
    if (event.type === 'NameReleased') return { holder: null }
    return reservation
  },
}
