import { AppError, type ErrorCode } from '../errors.ts'
import type { EventOf } from '../events/index.ts'
import type { Decider } from './decider.ts'

/** The holder of the name; null when it is available. */
interface Reservation {
  readonly holder: string | null
}

export type NameCommand =
  | {
      readonly type: 'ReserveName'
      readonly name: string
      readonly holder: string
      /** The error code when the name has another holder. */
      readonly taken: ErrorCode
      /** A holder that is known not to exist: its reservation is taken over. */
      readonly gone?: string
    }
  | { readonly type: 'ReleaseName'; readonly name: string; readonly holder: string }

/** Each unique name is a stream. The append is the check, so a name has one holder on any number of nodes. */
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
