import type { Credential } from '../../access/credential.ts'
import type { Caller, CommandDeps } from '../deps.ts'
import { issueSession } from './issueSession.ts'
import { ticketOf } from './ticket.ts'

/** The time in which a browser must open the URL with the ticket. */
const TICKET_S = 60

/** Issues a ticket for one sign-in of an API key. Rejects with `forbidden` or `session_limit_exceeded`. */
export const issueTicket = async (
  deps: Pick<CommandDeps, 'aggregates' | 'keyring'>,
  issuer: Credential,
  caller: Caller,
): Promise<{ ticket: string; expires_at: string }> => {
  const wanted = { issuer, permissions: {}, metadata: { purpose: 'sign-in ticket' }, expires_in: TICKET_S }
  const { expires_at, ...session } = await issueSession(deps, wanted, caller)
  return { ticket: ticketOf(deps.keyring, session), expires_at }
}
