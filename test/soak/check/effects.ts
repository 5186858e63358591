import { isOf, type Recorded } from '../../../src/events/event.ts'
import type { Effect, Records, WebhookReply } from '../records.ts'
import { type Finding, findingOf } from './finding.ts'
import type { RunStory } from './runStories.ts'

type Stories = ReadonlyMap<string, RunStory>

/** Compares the runs with what their code itself reported: each run began once, and none succeeded without its code. */
export const checkEffects = (
  { log, effects, webhooks }: Pick<Records, 'log' | 'effects' | 'webhooks'>,
  stories: Stories,
): Finding[] => {
  const byRun = Map.groupBy(effects, ({ run_id }) => run_id)
  return [
    ...checkBegan(byRun, stories),
    ...checkOnce(effects, stories),
    ...checkWebhooks(webhooks, effects, stories),
    ...checkTicks(log),
  ]
}

const checkBegan = (byRun: ReadonlyMap<string, readonly Effect[]>, stories: Stories): Finding[] => {
  const findings: Finding[] = []
  for (const [run_id, began] of byRun) {
    const story = stories.get(run_id)
    if (began.length > 1)
      findings.push(findingOf('duplicated', `Run ${run_id} began ${began.length} times`, story?.facts))
    if (story && willMark(story) && !story.facts.some((fact) => isOf(fact, 'RunBegun')))
      findings.push(findingOf('lost', `The code of run ${run_id} began before its mark`, story.facts))
    if (!story?.start)
      findings.push(
        findingOf('lost', `Run ${run_id} of ${began[0]?.fn} began and is not in the log`, story?.facts),
      )
  }
  for (const [run_id, { state, facts, fn }] of stories)
    if (state === 'succeeded' && !byRun.has(run_id))
      findings.push(findingOf('lost', `Run ${run_id} of ${fn} succeeded, and its code never began`, facts))
  return findings
}

/** Whether the worker stores a mark before the code of the run begins. */
const willMark = ({ start }: RunStory): boolean =>
  start !== null && isOf(start, 'RunStarted') && start.event.will_mark === true

/** A function with `once` that has no retry begins at most once for an event. */
const checkOnce = (effects: readonly Effect[], stories: Stories): Finding[] => {
  const once = effects.filter(({ run_id, event_id }) => {
    const plan = stories.get(run_id)?.plan
    return event_id !== null && plan?.once === true && plan.retry === undefined
  })
  return repeated(once, ({ fn, event_id }) => `${fn} for event ${event_id}`).map(([what, found]) =>
    findingOf(
      'duplicated',
      `${what} began ${found.length} times, although it may once`,
      found.flatMap(({ run_id }) => stories.get(run_id)?.facts ?? []),
    ),
  )
}

const checkWebhooks = (
  webhooks: readonly WebhookReply[],
  effects: readonly Effect[],
  stories: Stories,
): Finding[] => {
  const byToken = Map.groupBy(effects, ({ token }) => token)
  return webhooks.flatMap(({ token, status }) => {
    const began = byToken.get(token) ?? []
    const facts = began.flatMap(({ run_id }) => stories.get(run_id)?.facts ?? [])
    if (began.length > 1)
      return [findingOf('duplicated', `The webhook request ${token} began ${began.length} times`, facts)]
    const state = stories.get(began[0]?.run_id ?? '')?.state
    if (status === 200 && state !== 'succeeded')
      return [findingOf('lost', `The webhook request ${token} returned 200, and its run is ${state}`, facts)]
    return []
  })
}

/** Each tick of a schedule is requested once. */
const checkTicks = (log: readonly Recorded[]): Finding[] => {
  const ticks = log
    .filter((fact) => isOf(fact, 'RunRequested'))
    .filter(({ event }) => event.run_type === 'schedule' && event.attempt === 1 && !event.returned_by)
  return repeated(
    ticks,
    ({ event }) => `${JSON.stringify(event.target)} ${JSON.stringify(event.input?.value)}`,
  ).map(([what, facts]) => findingOf('duplicated', `The tick ${what} fired ${facts.length} times`, facts))
}

const repeated = <T>(items: readonly T[], keyOf: (item: T) => string): [string, T[]][] =>
  [...Map.groupBy(items, keyOf)].filter(([, found]) => found.length > 1)
