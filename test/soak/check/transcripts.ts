import type { Recorded } from '../../../src/events/event.ts'
import type { DomainEvent } from '../../../src/events/index.ts'
import { streamOf } from '../../../src/events/streams.ts'
import type { Frame, Records, Transcript } from '../records.ts'
import { type Finding, findingOf } from './finding.ts'

/** The name of the event in the environment stream, written apart from src/api; null for a fact that is not in it. */
const envEventOf = (event: DomainEvent): string | null => {
  switch (event.type) {
    case 'StreamCreated':
      return 'stream:created'
    case 'EventPublished':
      return 'event:created'
    case 'EventHandled':
      return 'event:handled'
    case 'RunStarted':
      return event.reclaimed ? null : 'run:start'
    case 'CallsExpired':
      return event.up_to === undefined ? 'calls:expired' : null
    default:
      return endOf(event)
  }
}

const endOf = (event: DomainEvent): string | null => {
  if (event.type === 'RunSucceeded') return 'run:stop'
  if (event.type === 'RunFailed') return 'run:fail'
  return event.type === 'RunCancelled' ? 'run:cancel' : null
}

const streamEventOf = (event: DomainEvent): string | null => {
  if (event.type === 'RunStarted') return event.reclaimed ? null : 'run:start'
  if (event.type === 'StreamDataEmitted') return 'stream:data'
  const isOfRun = 'started_revision' in event && event.started_revision !== null
  return isOfRun ? endOf(event) : null
}

/** Checks that each consumer received every event: once and in the order of the log, or at least once if it is named (I5). */
export const checkTranscripts = ({
  log,
  env_id,
  transcripts,
  quietAt,
}: Pick<Records, 'log' | 'env_id' | 'transcripts' | 'quietAt'>): Finding[] => {
  const ofEnv = log.flatMap((fact) => {
    const event = fact.metadata.env_id === env_id ? envEventOf(fact.event) : null
    return event === null || fact.cursor > quietAt ? [] : [{ id: fact.cursor, event }]
  })
  const later = new Set(log.flatMap(({ cursor }) => (cursor > quietAt ? [cursor] : [])))
  const byStream = Map.groupBy(log, ({ stream }) => stream)
  return transcripts.flatMap((transcript) =>
    transcript.kind === 'stream'
      ? checkStream(transcript, byStream.get(streamOf.stream(transcript.stream_id ?? '')) ?? [])
      : checkEnvironment(
          { ...transcript, frames: transcript.frames.filter(({ id }) => !later.has(id)) },
          ofEnv,
        ),
  )
}

const checkEnvironment = ({ name, kind, frames }: Transcript, expected: readonly Frame[]): Finding[] =>
  kind === 'consumer'
    ? checkFrames(name, [...firsts(frames)], expected, false)
    : checkFrames(name, frames, expected, true)

/** The first frame of each id: a named consumer may receive an event again. */
const firsts = (frames: readonly Frame[]): Iterable<Frame> =>
  new Map(frames.toReversed().map((frame) => [frame.id, frame])).values()

const checkStream = ({ name, frames }: Transcript, facts: readonly Recorded[]): Finding[] => {
  const [published, ...rest] = frames
  const complete = rest.at(-1)
  if (published?.event !== 'event:published')
    return [findingOf('lost', `${name}: began with ${published?.event} ${published?.id}`, facts)]
  if (complete?.event !== 'stream:complete')
    return [findingOf('stuck', `${name}: the stream was never complete`, facts)]
  const [from, to] = [Number(published.id), Number(complete.id)]
  const expected = facts.flatMap(({ event, revision }) => {
    const type = revision > from && revision <= to ? streamEventOf(event) : null
    return type === null ? [] : [{ id: String(revision), event: type }]
  })
  return checkFrames(name, rest.slice(0, -1), expected, true)
}

const textOf = ({ id, event }: Frame): string => `${event} ${id}`

const checkFrames = (
  name: string,
  frames: readonly Frame[],
  expected: readonly Frame[],
  inOrder: boolean,
): Finding[] => {
  const [got, wanted] = [frames.map(textOf), expected.map(textOf)]
  const [gotSet, wantedSet] = [new Set(got), new Set(wanted)]
  const report = (rule: 'lost' | 'duplicated' | 'reordered', what: string, found: readonly string[]) =>
    found.length === 0 ? [] : [findingOf(rule, `${name}: ${found.length} ${what} of ${wanted.length}`, found)]
  const findings = [
    ...report(
      'lost',
      'events are missing',
      wanted.filter((text) => !gotSet.has(text)),
    ),
    ...report(
      'duplicated',
      'events are not in the log',
      [...gotSet].filter((text) => !wantedSet.has(text)),
    ),
  ]
  const seen = new Set<string>()
  const again = got.filter((text) => seen.size === seen.add(text).size)
  findings.push(...report('duplicated', 'events came again', again))
  if (findings.length > 0 || !inOrder) return findings
  const at = got.findIndex((text, n) => text !== wanted[n])
  return at < 0
    ? []
    : [
        findingOf('reordered', `${name}: event ${at} is not the one of the log`, [
          `got ${got[at]}`,
          `expected ${wanted[at]}`,
        ]),
      ]
}
