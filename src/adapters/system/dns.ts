import { Resolver } from 'node:dns/promises'
import { AppError, messageOf } from '../../errors.ts'
import type { Dns } from '../../ports/dns.ts'

const TIMEOUT_MS = 2000
const TRIES = 2

/** The errors that mean that the record does not exist. All others mean that the answer is unknown. */
const NONE = new Set(['ENODATA', 'ENOTFOUND', 'EBADNAME'])

/**
 * `servers` are addresses such as `192.0.2.1` or `[2001:db8::1]:5353`. Each is asked every question, so that an attacker
 * must deceive all of them. An empty list uses the resolvers of the system.
 */
export const openDns = (servers: readonly string[]): Dns => {
  const resolvers = servers.length > 0 ? servers.map((server) => openResolver([server])) : [openResolver([])]
  const agreed = async (
    name: string,
    lookUp: (resolver: Resolver) => Promise<readonly string[]>,
  ): Promise<readonly string[]> => {
    const [first = [], ...others] = await Promise.all(resolvers.map((resolver) => asked(lookUp(resolver))))
    const common = first.filter((value) => others.every((values) => values.includes(value)))
    const isEmpty = first.length === 0 && others.every((values) => values.length === 0)
    if (common.length > 0 || isEmpty) return common
    throw new AppError('unavailable', `The DNS resolvers disagree about ${name}: a change may still spread`)
  }
  return {
    cname: (name) =>
      agreed(name, async (resolver) =>
        (await resolver.resolveCname(name)).map((target) => target.toLowerCase().replace(/\.$/, '')),
      ),
    txt: (name) =>
      agreed(name, async (resolver) => (await resolver.resolveTxt(name)).map((parts) => parts.join(''))),
  }
}

const openResolver = (servers: readonly string[]): Resolver => {
  const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: TRIES })
  if (servers.length > 0) resolver.setServers(servers)
  return resolver
}

const asked = async (answer: Promise<readonly string[]>): Promise<readonly string[]> => {
  try {
    return await answer
  } catch (error) {
    if (NONE.has((error as NodeJS.ErrnoException).code ?? '')) return []
    throw new AppError('unavailable', `The DNS did not answer: ${messageOf(error)}`, { cause: error })
  }
}
