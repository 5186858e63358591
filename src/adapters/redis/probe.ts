import { AppError } from '../../errors.ts'
import type { Probed } from '../../ports/probe.ts'
import { parseAddress } from './address.ts'
import { answerOf, Connection } from './connection.ts'

const REPLY_MS = 2000

/** Connects and reads the clock. Rejects with `bad_request` for a wrong login, and with `unavailable` without an answer. */
export const probeRedis = async (url: string): Promise<Probed> => {
  const address = parseAddress(url)
  let reason = 'it does not answer'
  const connection = new Connection(address, { onReady() {}, onLost: (lost) => void (reason = lost) })
  try {
    await connection.open(address.place)
    if (!connection.ready)
      throw new AppError('unavailable', `SVC_REDIS: ${address.place} is unavailable: ${reason}`)
    const [seconds = 0, microseconds = 0] = (await answerOf(REPLY_MS, connection.redis.time())).map(Number)
    return { place: address.place, clock: { time: seconds * 1000 + microseconds / 1000, resolutionMs: 1 } }
  } finally {
    connection.close()
  }
}
