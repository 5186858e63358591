import { parseToken } from '../../access/tokens.ts'
import type { Keyring } from '../../secrets/keyring.ts'

/**
 * A ticket is a session without permissions, and a proof that the service issued the session as a ticket. The proof cannot
 * be made from a session, whose metadata a client chooses.
 */
const proofOf = (session_id: string): string => `sign-in ticket ${session_id}`

export const ticketOf = (
  keyring: Pick<Keyring, 'macOf'>,
  { session_id, token }: { readonly session_id: string; readonly token: string },
): string => `${token}.${keyring.macOf(proofOf(session_id))}`

/** The token of the session in a ticket; undefined for any other text. */
export const sessionOfTicket = (keyring: Pick<Keyring, 'proves'>, ticket: string): string | undefined => {
  const [token = '', proof = ''] = ticket.split('.')
  const parsed = parseToken(token)
  return parsed?.kind === 'session' && keyring.proves(proofOf(parsed.id), proof) ? token : undefined
}
