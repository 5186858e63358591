import type { Dns } from '../../ports/dns.ts'
import { isPublicName } from '../../ports/domainName.ts'

/** CNAME records that a lookup follows; a longer chain could be a loop. */
const MAX_HOPS = 8

/**
 * Follows the CNAME records of `name`: whether they lead to `target`, and the first target; null without a record. What
 * the first target leads to is not reported, because the resolver may know private names.
 */
export const followRecords = async (
  dns: Pick<Dns, 'cname'>,
  name: string,
  target: string,
): Promise<{ readonly leads: boolean; readonly seen: string | null }> => {
  let seen: string | null = null
  let next = name
  for (let hop = 0; hop < MAX_HOPS && isPublicName(next); hop++) {
    const targets = await dns.cname(next)
    if (targets.includes(target)) return { leads: true, seen: target }
    const [first] = targets
    if (first === undefined) break
    seen ??= first
    next = first
  }
  return { leads: false, seen }
}
