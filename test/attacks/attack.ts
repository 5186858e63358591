import { appendFileSync } from 'node:fs'
import { suite } from '../support/suite.ts'
import { openTarget, type Target, type Tier, tiers } from './target.ts'

/** One attempt of deployed code or of a request to do more than it may (docs/security.md). */
export interface Attack {
  /** The name in the table of docs/security.md, such as `A/09-sqlite-read`. */
  readonly id: string
  readonly attempt: string
  /** The damage if it is not contained. */
  readonly severity: 'critical' | 'high' | 'medium' | 'low'
  /** The tiers that must contain it; default both. The others are reported with `notContained`. */
  readonly tiers?: readonly Tier[]
  /** Why the other tiers do not contain it. Required when `tiers` is. */
  readonly notContained?: string
  /** Resolves with the reason why the attack is contained. Throws when it went through. */
  run(target: Target): Promise<string>
}

/** A line of the table that `npm run attacks` prints. */
export interface AttackResult extends Pick<Attack, 'id' | 'attempt' | 'severity'> {
  readonly tier: Tier
  readonly outcome: 'contained' | 'NOT CONTAINED' | 'not stopped by this tier' | 'not tried'
  readonly reason: string
}

/** Results are appended to this file, one JSON object per line. */
const REPORT = process.env['SVC_ATTACK_REPORT']

/** `SVC_TEST_NAMESPACE=required`: a machine without the namespace tier fails the attacks instead of reporting them. */
const IS_REQUIRED = process.env['SVC_TEST_NAMESPACE'] === 'required'

const ATTACK_MS = 90_000

/** Tries each attack on a real service, once for each tier of the sandbox. */
export const attackSuite = (name: string, attacks: readonly Attack[]): void => {
  for (const tier of tiers) tryIn(tier, name, attacks)
}

const tryIn = (tier: Tier, name: string, attacks: readonly Attack[]): void => {
  const tried = suite<{ target: Target }>(`${name} (${tier} tier)`, { timeoutMs: ATTACK_MS })
  let unavailable: string | undefined

  tried.before(async (context) => {
    const target = await openTarget(tier)
    if (typeof target === 'string') unavailable = target
    else context.target = target
    if (unavailable !== undefined && IS_REQUIRED) throw new Error(unavailable)
  })
  tried.after(({ target }) => target?.close())

  for (const attack of attacks) {
    const { id, attempt, severity, run, notContained = '' } = attack
    const report = (outcome: AttackResult['outcome'], reason: string) => {
      const result: AttackResult = { id, attempt, severity, tier, outcome, reason }
      if (REPORT !== undefined) appendFileSync(REPORT, `${JSON.stringify(result)}\n`)
      if (outcome !== 'contained') process.stdout.write(`${tier}: ${id} ${outcome}: ${reason}\n`)
    }
    tried(`${id}: ${attempt}`, async ({ target }) => {
      if (attack.tiers && !attack.tiers.includes(tier))
        return report('not stopped by this tier', notContained)
      if (unavailable !== undefined) return report('not tried', unavailable)
      try {
        report('contained', await run(target))
      } catch (error) {
        report('NOT CONTAINED', error instanceof Error ? error.message : String(error))
        throw error
      }
    })
  }
  tried.run()
}
