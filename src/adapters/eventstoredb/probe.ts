import type { Probed } from '../../ports/probe.ts'
import { parseAddress } from './address.ts'
import { openEventStoreDb } from './index.ts'

/** Connects and reads the end of the log. The server does not report its time. Rejects as the opening does. */
export const probeEventStoreDb = async (url: string): Promise<Probed> => {
  const { place } = parseAddress(url)
  await (await openEventStoreDb(url)).close()
  return { place, clock: null }
}
