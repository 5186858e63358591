import { lookup, Resolver } from 'node:dns/promises'
import type { Address } from './frames.ts'
import { refusedBy } from './refusal.ts'

/** Returns the addresses of a canonical name, at least one. Rejects with an `EgressError`. */
export type Resolve = (
  name: string,
  options: { readonly family: 0 | 4 | 6; /** The operator names the host. */ readonly trusted: boolean },
) => Promise<readonly Address[]>

const TIMEOUT_MS = 3000
const TRIES = 2

/** The codes of an answer that contains no record. With any other code the records are unknown. */
const NONE = new Set(['ENODATA', 'ENOTFOUND', 'EBADNAME'])

const LOCALHOST: readonly Address[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
]

/**
 * Resolves names by DNS queries, which use no thread of the pool, so that slow names do not block files. The system's
 * resolution, with its hosts file, is used for names of the operator only.
 */
export const openResolver = (servers: readonly string[] = []): Resolve => {
  const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: TRIES })
  if (servers.length > 0) resolver.setServers(servers)

  const records = async (name: string, family: 4 | 6): Promise<readonly Address[]> => {
    try {
      const addresses = await (family === 4 ? resolver.resolve4(name) : resolver.resolve6(name))
      return addresses.map((address) => ({ address, family }))
    } catch (error) {
      if (NONE.has((error as NodeJS.ErrnoException).code ?? '')) return []
      throw refusedBy.dns(name, 'EAI_AGAIN')
    }
  }

  return async (name, { family, trusted }) => {
    const found: readonly Address[] =
      name === 'localhost' || name.endsWith('.localhost')
        ? LOCALHOST
        : trusted
          ? await systemLookup(name)
          : await bothFamilies(name, records)
    const wanted = found.filter((each) => family === 0 || each.family === family)
    if (wanted.length === 0) throw refusedBy.dns(name, 'ENOTFOUND')
    return wanted
  }
}

const systemLookup = async (name: string): Promise<readonly Address[]> => {
  try {
    const found = await lookup(name, { all: true })
    return found.map(({ address, family }) => ({ address, family: family === 6 ? 6 : 4 }))
  } catch (error) {
    throw refusedBy.dns(name, (error as NodeJS.ErrnoException).code ?? 'EAI_AGAIN')
  }
}

/** A name is usable when one family was answered, IPv4 first. */
const bothFamilies = async (
  name: string,
  records: (name: string, family: 4 | 6) => Promise<readonly Address[]>,
): Promise<readonly Address[]> => {
  const [four, six] = await Promise.allSettled([records(name, 4), records(name, 6)])
  const found = [four, six].flatMap((each) => (each.status === 'fulfilled' ? each.value : []))
  if (found.length === 0 && four.status === 'rejected') throw four.reason
  return found
}
