import { hostPatternOf, textOfPattern } from '../../egress/hosts.ts'
import { AppError } from '../../errors.ts'

/** Entries of `network`. A longer list would cost each connection time. */
export const MAX_NETWORK = 100

/** Returns the entries of `network` in their canonical form, each once. Throws `bad_request` for the first wrong one. */
export const checkedNetwork = (network: readonly string[] | null): readonly string[] | null => {
  if (!network) return null
  if (network.length > MAX_NETWORK)
    throw new AppError(
      'bad_request',
      `network: expected at most ${MAX_NETWORK} entries, got ${network.length}`,
    )
  const entries = network.map((entry, index) => {
    const pattern = hostPatternOf(entry)
    if (pattern) return textOfPattern(pattern)
    throw new AppError(
      'bad_request',
      `network/${index}: expected a host such as "api.example.com", "*.example.com" or "api.example.com:443", ` +
        `got ${JSON.stringify(entry.slice(0, 80))}`,
    )
  })
  return [...new Set(entries)]
}
