import { Resolver } from 'node:dns/promises'
import { AppError, messageOf } from '../../errors.ts'
import type { Dns } from '../../ports/dns.ts'

const TIMEOUT_MS = 2000
const TRIES = 2

/** The errors that mean that the record does not exist. All others mean that the answer is unknown. */
const NONE = new Set(['ENODATA', 'ENOTFOUND', 'EBADNAME'])

/** `servers` are addresses such as `192.0.2.1` or `[2001:db8::1]:5353`. An empty list uses those of the system. */
export const openDns = (servers: readonly string[]): Dns => {
  const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: TRIES })
  if (servers.length > 0) resolver.setServers(servers)
  return {
    cname: async (name) => {
      try {
        return (await resolver.resolveCname(name)).map((target) => target.toLowerCase().replace(/\.$/, ''))
      } catch (error) {
        if (NONE.has((error as NodeJS.ErrnoException).code ?? '')) return []
        throw new AppError('unavailable', `The DNS did not answer: ${messageOf(error)}`, { cause: error })
      }
    },
  }
}
