import { withDeadline } from '../../loops/deadline.ts'
import type { Address } from './address.ts'
import { type Connection, silent } from './connection.ts'
import { appErrorOf } from './failures.ts'

/** Time for the server to store the metadata of a stream, milliseconds. */
const DEADLINE_MS = 5000

/** Sets the age in seconds at which the server drops the events of a stream: `$maxAge` of its metadata. */
export const setRetention = async (
  connection: Connection,
  stream: string,
  maxAge: number,
  login: Address['login'],
): Promise<void> => {
  const { client } = connection.current
  try {
    // This call can have a deadline; the client's batch append cannot (decision 0010).
    const done = client.setStreamMetadata(stream, { maxAge }, { credentials: login, requiresLeader: true })
    await withDeadline(DEADLINE_MS, done, silent)
  } catch (error) {
    throw appErrorOf(error)
  }
}
