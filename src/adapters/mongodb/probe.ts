import { AppError } from '../../errors.ts'
import type { Probed } from '../../ports/probe.ts'
import { parseAddress } from './address.ts'
import { ask, openingFailure } from './failures.ts'
import { Registry } from './registry.ts'

/** Connects, reads the clock, and checks that the user may write. Rejects as the opening of the read models does. */
export const probeMongo = async (url: string): Promise<Probed> => {
  const { newClient, database, place } = parseAddress(url)
  const client = newClient()
  try {
    const db = client.db(database)
    await ask(() => new Registry({ db }).probe())
    const { localTime } = await ask(() => db.command({ hello: 1 }))
    return { place, clock: localTime instanceof Date ? { time: localTime.getTime(), resolutionMs: 1 } : null }
  } catch (error) {
    throw error instanceof AppError && error.code === 'bad_request' ? error : openingFailure(error, place)
  } finally {
    await client.close()
  }
}
