import { readRunLog } from '../../../src/commands/runs/readRunLog.ts'
import { isIdle } from '../../../src/domain/stream.ts'
import type { Recorded } from '../../../src/events/event.ts'
import { streamOf } from '../../../src/events/streams.ts'
import type { Ids, ModelNode } from '../world.ts'
import type { namesOf } from './runsNames.ts'
import { ALONE, CHILDREN, EVENTS } from './runsSetup.ts'

const FUNCTIONS = ['first', 'second', 'called']
const LONGEST_CHAIN = 8

/** Every name that a run of a scenario can have. */
const RUNS = [
  ...Object.keys(EVENTS).flatMap((event) => FUNCTIONS.map((fn) => `${event}/${fn}`)),
  ...ALONE,
  ...Object.keys(CHILDREN),
].flatMap((name) => Array.from({ length: LONGEST_CHAIN }, (_, retries) => name + '!'.repeat(retries)))

/** Reads the events and runs of an environment from the read models, and their facts from the log. */
export const observeRuns = async (
  node: ModelNode,
  { env_id, ids, names }: { env_id: string; ids: Ids; names: ReturnType<typeof namesOf> },
): Promise<unknown> => {
  const { views, store, aggregates } = node
  await views.settled()
  const eventNames = new Map(Object.keys(EVENTS).map((name) => [names.eventId(name), name]))
  const runNames = new Map(RUNS.map((name) => [names.runId(name), name]))
  const query = { equal: { env_id }, sort: 'order', limit: 200, offset: 0 } as const
  const runs = (await views.runs.find(query)).items
  const events = (await views.events.find(query)).items
  const waiting = [...(await views.waitingRuns.getMany([...runNames.keys()])).keys()]
  const days = (await views.callDays.find({ ...query, sort: 'day' })).items

  const streams = [...Object.keys(EVENTS).filter((name) => EVENTS[name]?.on === undefined), ...ALONE]
  const handled = new Set<string>()
  const idle: string[] = []
  for (const name of streams) {
    const stream = streamOf.stream(names.streamId(name))
    const facts = await Array.fromAsync(store.read(stream))
    if (facts.length === 0) continue
    for (const event_id of handledOnce(facts)) handled.add(event_id)
    if (await aggregates.streams.read(stream, isIdle)) idle.push(name)
  }

  const output: Record<string, number[]> = {}
  for (const name of ['tick0', 'web0']) {
    const { lines } = await readRunLog(node, { run_id: names.runId(name), input_at: null })
    if (lines.length > 0) output[name] = lines.map(({ text }) => Number(text))
  }

  return {
    output,
    events: Object.fromEntries(
      events.map(({ event_id, abandoned }) => [
        eventNames.get(event_id) ?? event_id,
        { handled: handled.has(event_id), abandoned: abandoned !== undefined },
      ]),
    ),
    runs: Object.fromEntries(
      runs.map(({ run_id, status, worker_id, build_id, attempt, running_on }) => [
        runNames.get(run_id) ?? run_id,
        {
          status,
          worker: ids.nameOf(worker_id),
          build: ids.nameOf(build_id),
          attempt,
          has: running_on !== null,
        },
      ]),
    ),
    counted: days.reduce((sum, { runs }) => sum + runs, 0),
    waiting: waiting.map((run_id) => runNames.get(run_id) ?? run_id).sort(),
    idle: idle.sort(),
  }
}

/** The ids of the handled events of a stream. No event is handled, and no run starts or ends, twice (I3, I4). */
const handledOnce = (facts: readonly Recorded[]): string[] => {
  const once = new Set<string>()
  const note = (what: string, id: string): string => {
    const key = `${what} ${id}`
    if (once.has(key)) throw new Error(`Expected ${what} of ${id} once, got it twice`)
    once.add(key)
    return id
  }
  return facts.flatMap(({ event }) => {
    switch (event.type) {
      case 'EventPublished':
        note('publication', event.event_id)
        return []
      case 'EventHandled':
        return [note('dispatch', event.event_id)]
      case 'RunStarted':
        if (!event.reclaimed) note('start', event.run_id)
        return []
      case 'RunSucceeded':
      case 'RunFailed':
        note('end', event.run_id)
        return []
      default:
        return []
    }
  })
}
