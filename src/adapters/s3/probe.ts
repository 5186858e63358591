import type { EngineTime, Probed } from '../../ports/probe.ts'
import { parseAddress } from './address.ts'
import { openS3Blobs } from './index.ts'

const REPLY_MS = 4000

/** Connects and reads the clock. Rejects as the opening of the blobs does. */
export const probeS3 = async (url: string): Promise<Probed> => {
  await (await openS3Blobs(url)).close()
  const { endPoint, place } = parseAddress(url)
  return { place, clock: await clockOf(endPoint) }
}

/** Every HTTP reply contains the time, also a refusal. */
const clockOf = async (endPoint: string): Promise<EngineTime | null> => {
  const signal = AbortSignal.timeout(REPLY_MS)
  const reply = await fetch(endPoint, { method: 'HEAD', redirect: 'manual', signal }).catch(() => null)
  const time = Date.parse(reply?.headers.get('date') ?? '')
  return Number.isNaN(time) ? null : { time, resolutionMs: 1000 }
}
