import { isOf } from '../../../src/events/event.ts'
import type { Records } from '../records.ts'
import { type Finding, findingOf } from './finding.ts'
import type { RunStory } from './runStories.ts'

/** Compares the calls that succeeded in user code with the log (I1). */
export const checkCalls = (
  { log, calls }: Pick<Records, 'log' | 'calls'>,
  stories: ReadonlyMap<string, RunStory>,
): Finding[] => {
  const published = new Set(
    log.flatMap((fact) => (isOf(fact, 'EventPublished') ? [fact.event.event_id] : [])),
  )
  const paths = new Set(log.flatMap((fact) => (isOf(fact, 'FileStored') ? [fact.event.path] : [])))
  return calls.flatMap(({ run_id, sent, called, stored, emitted }) => {
    const facts = stories.get(run_id)?.facts ?? []
    const count = facts.filter((fact) => isOf(fact, 'StreamDataEmitted')).length
    const lost = [
      ...sent.filter((id) => !published.has(id)).map((id) => `event ${id}`),
      ...called.filter((id) => !stories.has(id)).map((id) => `run ${id}`),
      ...stored.filter((path) => !paths.has(path)).map((path) => `file ${path}`),
    ]
    return [
      ...lost.map((what) =>
        findingOf('lost', `Run ${run_id} caused ${what}, which is not in the log`, facts),
      ),
      ...(count === emitted
        ? []
        : [
            findingOf(
              count < emitted ? 'lost' : 'duplicated',
              `Run ${run_id} emitted ${emitted} times, and the log contains ${count}`,
              facts,
            ),
          ]),
    ]
  })
}
