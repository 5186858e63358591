import type { Expected } from '../records.ts'
import { type Finding, findingOf } from './finding.ts'
import type { RunStory } from './runStories.ts'

/** Attempts beyond the retry policy, because earlier ones were lost (decision 0030). */
const MAX_LOST = 3

type Stories = ReadonlyMap<string, RunStory>

/** The attempts of each chain, the first one first. */
const chainsOf = (stories: Stories): RunStory[][] => {
  const chains: RunStory[][] = []
  for (const story of stories.values()) {
    if (story.plan.attempt > 1) continue
    const chain = [story]
    for (let next = after(stories, story); next; next = after(stories, next)) chain.push(next)
    chains.push(chain)
  }
  return chains
}

const after = (stories: Stories, { retry_run_id }: RunStory): RunStory | undefined =>
  retry_run_id === null ? undefined : stories.get(retry_run_id)

/** Checks that attempts follow each other within policy + 3, and that each chain ends as its function must. */
export const checkChains = (
  stories: Stories,
  { expected, cancelled }: { expected: ReadonlyMap<string, Expected>; cancelled: readonly string[] },
): Finding[] => {
  const asked = new Set(cancelled)
  const findings: Finding[] = []
  const chained = new Set<string>()
  for (const chain of chainsOf(stories)) {
    for (const { plan } of chain) chained.add(plan.run_id)
    findings.push(...checkAttempts(chain), ...checkEnd(chain, expected, asked))
  }
  for (const { plan, facts, retry_run_id } of stories.values()) {
    if (!chained.has(plan.run_id))
      findings.push(
        findingOf('illegal transition', `Run ${plan.run_id} is attempt ${plan.attempt} of no run`, facts),
      )
    if (retry_run_id !== null && !stories.has(retry_run_id))
      findings.push(findingOf('lost', `The retry ${retry_run_id} of run ${plan.run_id} is missing`, facts))
  }
  return findings
}

const checkAttempts = (chain: readonly RunStory[]): Finding[] => {
  const findings: Finding[] = []
  const [first] = chain
  for (const [n, { plan, facts }] of chain.entries()) {
    const { attempt, lost = 0, retry, once, target, run_id } = plan
    const problems = [
      attempt !== n + 1 && `attempt ${attempt} instead of ${n + 1}`,
      lost > MAX_LOST && `${lost} lost attempts`,
      attempt > 1 + (retry?.attempts ?? 0) + lost && `attempt ${attempt} with ${lost} lost`,
      n > 0 && plan.origin_run_id !== first?.plan.run_id && `the origin ${plan.origin_run_id}`,
      lost > 0 && (once || 'code' in target) && 'a second start, although it may start once only',
    ].filter((problem) => problem !== false)
    if (problems.length > 0)
      findings.push(findingOf('illegal transition', `Run ${run_id} has ${problems.join(', ')}`, facts))
  }
  return findings
}

const checkEnd = (
  chain: readonly RunStory[],
  expected: ReadonlyMap<string, Expected>,
  asked: ReadonlySet<string>,
): Finding[] => {
  const last = chain.at(-1)
  if (!last) return []
  const { plan, fn, state, error, facts } = last
  const wrong = (message: string) => [
    findingOf('wrong outcome', `Run ${plan.run_id} of ${fn} ${message}`, facts),
  ]
  if (state === 'cancelled')
    return chain.some((run) => asked.has(run.plan.run_id))
      ? []
      : wrong('was cancelled, and nobody asked for it')
  const how = expected.get(fn ?? '')
  if (how === undefined) return wrong('is not of a known function')
  if (how === 'either') return []
  if (state === 'succeeded' && how === 'fails') return wrong('succeeded, and it cannot')
  if (state !== 'failed' || how === 'fails') return []
  return mayBeLost(last) ? [] : wrong(`failed for no reason of its own: ${error?.code}: ${error?.message}`)
}

/** Whether a run may end as lost: it starts once only, or its earlier attempts used up what such runs get. */
const mayBeLost = ({ plan, error }: RunStory): boolean =>
  error?.code === 'worker_lost' && (plan.once === true || plan.lost === MAX_LOST)
