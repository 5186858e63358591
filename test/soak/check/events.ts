import { isOf, type Recorded } from '../../../src/events/event.ts'
import type { EventOf } from '../../../src/events/index.ts'
import { CALL, CANCEL, isControl } from '../../../src/events/eventType.ts'
import { type Finding, findingOf } from './finding.ts'
import type { RunStory } from './runStories.ts'

interface Handling {
  readonly published: Recorded<EventOf<'EventPublished'>>
  /** Functions that were deployed for the event at all times from its publication on, and at any such time. */
  readonly always: Set<string>
  readonly ever: Set<string>
  handled: Recorded<EventOf<'EventHandled'>> | null
}

/** The deployed handlers of each project, as the log says. */
class Handlers {
  readonly #byProject = new Map<string, readonly { readonly fn: string; readonly on_event: string }[]>()

  take({ event }: Recorded): boolean {
    if (event.type === 'ProjectDeleted') return this.#byProject.delete(event.project_id)
    if (event.type !== 'BuildDeployed') return false
    const handlers = (event.functions ?? []).flatMap(({ ns, var: name, on_event }) =>
      on_event === undefined ? [] : [{ fn: `${ns}/${name}`, on_event }],
    )
    this.#byProject.set(event.project_id, handlers)
    return true
  }

  of(event_type: string): string[] {
    return [...this.#byProject.values()]
      .flat()
      .filter(({ on_event }) => on_event === event_type)
      .map(({ fn }) => fn)
  }
}

/** Checks that each event is published once and handled once, and started exactly the runs of its handlers (I3). */
export const checkEvents = (log: readonly Recorded[], stories: ReadonlyMap<string, RunStory>): Finding[] => {
  const findings: Finding[] = []
  const handlers = new Handlers()
  const events = new Map<string, Handling>()
  const open = new Set<Handling>()
  for (const fact of log) {
    if (handlers.take(fact)) for (const handling of open) narrow(handling, handlers)
    if (isOf(fact, 'EventPublished')) {
      const known = events.get(fact.event.event_id)
      if (known) {
        const message = `Event ${fact.event.event_id} is published twice`
        findings.push(findingOf('duplicated', message, [known.published, fact]))
        continue
      }
      const found = handlers.of(fact.event.event_type)
      const handling = { published: fact, always: new Set(found), ever: new Set(found), handled: null }
      events.set(fact.event.event_id, handling)
      open.add(handling)
    } else if (isOf(fact, 'EventHandled')) {
      const handling = events.get(fact.event.event_id)
      if (!handling || handling.handled) {
        const message = `Event ${fact.event.event_id} is handled ${handling ? 'twice' : 'and was not published'}`
        findings.push(
          findingOf('duplicated', message, [...(handling?.handled ? [handling.handled] : []), fact]),
        )
        continue
      }
      handling.handled = fact
      open.delete(handling)
    }
  }
  const byEvent = Map.groupBy(
    [...stories.values()].filter(({ plan }) => plan.attempt === 1),
    ({ plan }) => plan.event_id,
  )
  for (const [event_id, handling] of events)
    findings.push(...checkHandling(handling, byEvent.get(event_id) ?? [], stories))
  return findings
}

const narrow = (handling: Handling, handlers: Handlers): void => {
  const now = new Set(handlers.of(handling.published.event.event_type))
  for (const fn of handling.always) if (!now.has(fn)) handling.always.delete(fn)
  for (const fn of now) handling.ever.add(fn)
}

const checkHandling = (
  { published, handled, always, ever }: Handling,
  runs: readonly RunStory[],
  stories: ReadonlyMap<string, RunStory>,
): Finding[] => {
  const { event_id, event_type } = published.event
  const name = `Event ${event_id} (${event_type})`
  if (!handled) return [findingOf('stuck', `${name} was never handled`, [published])]
  const { run_ids, runs: total, error } = handled.event
  if (error)
    return error.code === 'cancelled' && event_type === CALL
      ? []
      : [findingOf('lost', `${name} was abandoned: ${error.message}`, [published, handled])]
  const facts = [published, handled, ...runs.flatMap((run) => run.facts)]
  const findings: Finding[] = []
  const report = (rule: 'lost' | 'duplicated', message: string) =>
    findings.push(findingOf(rule, `${name}: ${message}`, facts))
  for (const id of run_ids) if (!stories.has(id)) report('lost', `its run ${id} never started`)
  const listed = new Set(run_ids)
  const others = runs.filter(({ plan }) => !listed.has(plan.run_id))
  const count = run_ids.length + others.length
  if (total === undefined)
    for (const { plan } of others) report('duplicated', `it also started ${plan.run_id}`)
  else if (count !== total)
    report(count < total ? 'lost' : 'duplicated', `it has ${count} runs, and its dispatch counts ${total}`)
  const started = [...run_ids.flatMap((id) => stories.get(id) ?? []), ...(total === undefined ? [] : others)]
  const fns = started.map(({ fn }) => fn ?? '')
  if (isControl(event_type)) {
    const count = event_type === CANCEL ? 0 : 1
    if (fns.length !== count)
      report(fns.length < count ? 'lost' : 'duplicated', `it started ${fns.length} runs`)
    return findings
  }
  const found = new Set<string>()
  for (const fn of fns) {
    if (!ever.has(fn)) report('duplicated', `${fn} was not deployed for it`)
    else if (found.has(fn)) report('duplicated', `its handler ${fn} has two runs`)
    found.add(fn)
  }
  for (const fn of always) if (!found.has(fn)) report('lost', `its handler ${fn} has no run`)
  return findings
}
