import { isOf, type Recorded } from '../../../src/events/event.ts'
import type { Lists, Records } from '../records.ts'
import { type Finding, findingOf } from './finding.ts'
import type { RunState, RunStory } from './runStories.ts'

/** The order of a list: newest first. */
const byOrder = (a: Recorded, b: Recorded): number => (orderOf(a) < orderOf(b) ? 1 : -1)
const orderOf = ({ at, cursor }: Recorded): string => `${at}/${cursor}`

/** Compares the lists of the API with the log: no document is missing, stale or in the wrong place. */
export const checkLists = (
  { log, lists, env_id }: Pick<Records, 'log' | 'lists' | 'env_id'>,
  stories: ReadonlyMap<string, RunStory>,
): Finding[] => {
  if (!lists) return []
  const ofEnv = log.filter(({ metadata }) => metadata.env_id === env_id)
  const events = ofEnv
    .filter((fact) => isOf(fact, 'EventPublished'))
    .toSorted(byOrder)
    .map(({ event }) => event.event_id)
  const runs = [...stories.values()]
    .flatMap((story) => (story.start?.metadata.env_id === env_id ? [{ ...story, start: story.start }] : []))
    .toSorted((a, b) => byOrder(a.start, b.start))
    .map(({ plan, state }) => `${plan.run_id} ${listedAs(state)} ${plan.attempt}`)
  return [
    ...compare(
      '/events',
      lists.events.map(({ event_id }) => event_id),
      events,
    ),
    ...compare(
      '/runs',
      lists.runs.map(({ run_id, status, attempt }) => `${run_id} ${status} ${attempt}`),
      runs,
    ),
    ...checkStats(lists.stats, runs),
  ]
}

const listedAs = (state: RunState): string =>
  state === 'requested' || state === 'returned' ? 'running' : state

const compare = (path: string, listed: readonly string[], expected: readonly string[]): Finding[] => {
  const [got, wanted] = [new Set(listed), new Set(expected)]
  const missing = expected.filter((item) => !got.has(item))
  const wrong = listed.filter((item) => !wanted.has(item))
  if (missing.length > 0 || wrong.length > 0)
    return [
      findingOf('stale read', `GET ${path}: ${missing.length} are missing, ${wrong.length} are stale`, [
        ...missing.slice(0, 5).map((item) => `missing: ${item}`),
        ...wrong.slice(0, 5).map((item) => `stale: ${item}`),
      ]),
    ]
  if (listed.length !== expected.length)
    return [findingOf('duplicated', `GET ${path}: ${listed.length} items instead of ${expected.length}`)]
  const at = listed.findIndex((item, n) => item !== expected[n])
  if (at < 0) return []
  const facts = [`got ${listed[at]}`, `expected ${expected[at]}`]
  return [findingOf('reordered', `GET ${path}: item ${at} is not the one of the log`, facts)]
}

const checkStats = (stats: Lists['stats'], runs: readonly string[]): Finding[] => {
  const count = (status: string) => runs.filter((run) => run.includes(` ${status} `)).length
  const expected = {
    total_runs: runs.length,
    running: count('running'),
    succeeded: count('succeeded'),
    failed: count('failed'),
    cancelled: count('cancelled'),
  }
  const wrong = (Object.keys(expected) as (keyof typeof expected)[])
    .filter((field) => stats[field] !== expected[field])
    .map((field) => `${field}: ${stats[field]} instead of ${expected[field]}`)
  return wrong.length === 0
    ? []
    : [findingOf('stale read', 'GET /runs/stats is not what the log says', wrong)]
}
