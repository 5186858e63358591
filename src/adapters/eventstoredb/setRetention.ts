import type { Address } from './address.ts'
import type { Connection } from './connection.ts'
import { appErrorOf } from './failures.ts'

/** Time for the server to store the metadata of a stream, milliseconds. */
const DEADLINE_MS = 5000

/** Sets the age in seconds at which the server drops the events of a stream: `$maxAge` of its metadata. Null: none. */
export const setRetention = async (
  connection: Connection,
  stream: string,
  maxAge: number | null,
  login: Address['login'],
): Promise<void> => {
  try {
    // With credentials the client makes a call of its own; its batch append has no deadline (decision 0010).
    const metadata = maxAge === null ? {} : { maxAge }
    const options = { credentials: login, requiresLeader: true }
    await connection.reply(({ client }) => client.setStreamMetadata(stream, metadata, options), {
      ms: DEADLINE_MS,
    })
  } catch (error) {
    throw appErrorOf(error)
  }
}
