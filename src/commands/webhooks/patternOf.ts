import { setImmediate as turn } from 'node:timers/promises'
import type { FunctionSpec } from '../../events/project.ts'
import type { Wired } from '../../projections/wiring.ts'
import type { CommandDeps } from '../deps.ts'

type Keyring = Pick<CommandDeps['keyring'], 'webhookToken'>
type ByToken = ReadonlyMap<string, Wired>

/** Tokens that are computed before other work continues: each costs some microseconds. */
const PER_TURN = 100

/** By the patterns of one service. Every change of the environment makes new lists. */
const indexes = new WeakMap<readonly Wired[], Promise<ByToken>>()

/** Outlive a change of the environment that is none of the build. A build belongs to one project. */
const tokensOf = new WeakMap<Wired['build'], Map<FunctionSpec, string>>()

/**
 * Finds the webhook with parameters that has this token. Thousands of patterns can match one path, and whoever calls it
 * needs no credential: so the token is looked up, and not compared with that of each pattern. The time of the look-up depends
 * on a hash of the whole text, and tells nothing about its parts.
 */
export const patternOf = async (
  keyring: Keyring,
  env_id: string,
  patterns: readonly Wired[],
  token: string,
): Promise<Wired | undefined> => {
  if (patterns.length === 0) return undefined
  const known = indexes.get(patterns) ?? indexOf(keyring, env_id, patterns)
  indexes.set(patterns, known)
  return (await known).get(token)
}

const indexOf = async (keyring: Keyring, env_id: string, patterns: readonly Wired[]): Promise<ByToken> => {
  const index = new Map<string, Wired>()
  let computed = 0
  for (const deployed of patterns) {
    const { build, fn } = deployed
    if (!fn.webhook) continue
    const tokens = tokensOf.get(build) ?? new Map<FunctionSpec, string>()
    tokensOf.set(build, tokens)
    const known = tokens.get(fn)
    const token = known ?? keyring.webhookToken(env_id, fn.webhook)
    index.set(token, deployed)
    if (known !== undefined) continue
    tokens.set(fn, token)
    if (++computed % PER_TURN === 0) await turn()
  }
  return index
}
