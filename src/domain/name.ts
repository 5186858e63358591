import { AppError, type ErrorCode } from '../errors.ts'
import type { EventOf } from '../events/index.ts'
import { type Decider, type Folded, foreign } from './decider.ts'

/** The holder of a name. A rename has the fence it was decided on; a creation and a fact of version 0.1.0 have none. */
export type NameHolder = Pick<EventOf<'NameReserved'>, 'holder' | 'fence' | 'reserved_at' | 'org_id'>

/** Null when the name is available. */
interface Reservation {
  readonly held: NameHolder | null
}

export type NameCommand =
  | {
      readonly type: 'ReserveName'
      readonly name: string
      readonly by: NameHolder
      /** The error code when the name has another holder. */
      readonly taken: ErrorCode
      /** A holder whose reservation is known to be void: it is taken over. */
      readonly gone?: NameHolder
    }
  | { readonly type: 'ReleaseName'; readonly name: string; readonly holder: string }

/** Orders the reservations of one holder: a creation comes before every rename. */
export const fenceOf = ({ fence = -1 }: NameHolder): number => fence

type NameEvent = EventOf<'NameReserved' | 'NameReleased'>

/** Each unique name is a stream. The append is the check, so a name has one holder on any number of nodes. */
export const name: Decider<Reservation, NameCommand, NameEvent> = {
  initial: () => ({ held: null }),

  decide(command, { held }) {
    switch (command.type) {
      case 'ReserveName': {
        const { name, by, taken, gone } = command
        const isOwn = held?.holder === by.holder
        if (isOwn && fenceOf(held) >= fenceOf(by)) return []
        const isGone = held && gone && held.holder === gone.holder && fenceOf(held) === fenceOf(gone)
        if (held && !isOwn && !isGone) throw new AppError(taken, `name: "${name}" is taken`)
        return [{ type: 'NameReserved', name, ...by }]
      }
      case 'ReleaseName':
        if (held?.holder !== command.holder) return []
        return [{ type: 'NameReleased', name: command.name, holder: command.holder }]
      default:
        return command satisfies never
    }
  },

  evolve(_, { event }: Folded<NameEvent>) {
    switch (event.type) {
      case 'NameReserved': {
        const { type: _, name: __, ...held } = event
        return { held }
      }
      case 'NameReleased':
        return { held: null }
      default:
        return foreign(event)
    }
  },
}
