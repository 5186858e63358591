import { type Build, type Event, type Run } from '../support/build.ts'
import { until } from '../support/until.ts'
import type { Target } from './client.ts'
import { EVENT_TYPE, PROJECT } from './functions.ts'
import type { Ledger } from './ledger.ts'
import { callHook, sha256 } from './writers.ts'

/** The longest time in which a restarted service must end all runs, on a machine with more work than cores. */
const ENDS_MS = 300_000

/** Calls a webhook, again as long as the service asks for it: its first child may take long to start. */
const calledHook: typeof callHook = (target, path, body) =>
  until(() => callHook(target, path, body), { timeoutMs: ENDS_MS, everyMs: 500 })

/** What a checker has seen of the lists of a service, so that it reads only what is new. */
export class Seen {
  /** The ids of the events of each key. */
  readonly events = new Map<string, Set<string>>()
  readonly runs = new Map<string, Run>()
  readonly webhookRuns = new Set<string>()
  /** The length of the list of events. */
  count = 0
}

/** Compares a running service with the record of its clients. Resolves with one line for each difference. */
export const checkService = async (
  target: Target,
  ledger: Ledger,
  { seen = new Seen(), waitsMs = ENDS_MS }: { readonly seen?: Seen; readonly waitsMs?: number } = {},
): Promise<string[]> => {
  const problems = await eventsAndRuns(target, ledger, { seen, waitsMs })
  problems.push(...(await webhookRuns(target, ledger, seen)))
  problems.push(...(await contents(target, ledger)), ...(await variables(target, ledger)))
  problems.push(...(await deployment(target, ledger)))
  return problems
}

/** Waits until every run has ended. Resolves with the differences that remain. */
const eventsAndRuns = async (
  target: Target,
  ledger: Ledger,
  { seen, waitsMs }: { readonly seen: Seen; readonly waitsMs: number },
): Promise<string[]> => {
  let problems: string[] = []
  const before = seen.count
  const isRight = async () => {
    await readLists(target, seen)
    problems = [
      ...(seen.count < before ? [`expected at least ${before} events, got ${seen.count}`] : []),
      ...(await unended(target)),
      ...eventsOf(ledger, seen),
    ]
    return problems.length === 0
  }
  await until(isRight, { timeoutMs: waitsMs, everyMs: 50 }).catch((error: unknown) => {
    if (problems.length === 0) problems = [String(error)]
  })
  return problems
}

const unended = async ({ api }: Target): Promise<string[]> => {
  const problems: string[] = []
  for (const status of ['running', 'pending_retry']) {
    const { pagination } = await api.page<Run>(`/runs?status=${status}&limit=1`)
    if (pagination.total > 0) problems.push(`${pagination.total} runs are ${status}`)
  }
  return problems
}

/** Reads the events and runs that are new in the lists, and again the runs that had not ended. */
const readLists = async ({ api }: Target, seen: Seen): Promise<void> => {
  const { data: events, total } = await newest<Event>(api, `/events?event_type=${EVENT_TYPE}`, seen.count)
  seen.count = total
  for (const listed of events) {
    const { event_id } = listed
    const { event_data } = listed.event_data === null ? await api.get<Event>(`/events/${event_id}`) : listed // a large one
    const { n } = event_data as { n: string }
    const ids = seen.events.get(n) ?? new Set()
    seen.events.set(n, ids.add(event_id))
  }
  const { data: runs } = await newest<Run>(api, '/runs?type=event', seen.runs.size)
  for (const run of runs) seen.runs.set(run.run_id, run)
  for (const { run_id, status } of seen.runs.values())
    if (status === 'running' || status === 'pending_retry')
      seen.runs.set(run_id, await api.get<Run>(`/runs/${run_id}`))
}

/** The entries of a list beyond those that were known. They come first, and more may be added meanwhile. */
const newest = async <T>(api: Target['api'], path: string, known: number) => {
  const data: T[] = []
  for (;;) {
    const page = await api.page<T>(`${path}&limit=100&offset=${data.length}`)
    data.push(...page.data)
    const { total } = page.pagination
    if (data.length >= total - known || page.data.length === 0) return { data, total }
  }
}

/** Each acknowledged event is stored once and has run to its end once. No event of a key is stored twice. */
const eventsOf = (ledger: Ledger, seen: Seen): string[] => {
  const problems: string[] = []
  const runs = Map.groupBy(seen.runs.values(), ({ event_id }) => event_id ?? '')
  for (const { register, acknowledged } of ledger.acknowledged('event')) {
    const { id } = acknowledged
    if (!seen.events.get(register)?.has(id)) problems.push(`lost event ${id} with key ${register}`)
    const ends = (runs.get(id) ?? []).filter(({ status }) => status === 'succeeded')
    if (ends.length !== 1) problems.push(`event ${id}: expected one successful run, got ${ends.length}`)
  }
  for (const [key, ids] of seen.events)
    if (ids.size > 1) problems.push(`key ${key}: expected one event, got ${[...ids].join(', ')}`)
  return problems
}

/** The run of each acknowledged webhook has the result that the caller received. */
const webhookRuns = async ({ api }: Target, ledger: Ledger, seen: Seen): Promise<string[]> => {
  const problems: string[] = []
  for (const { value, acknowledged } of ledger.acknowledged('webhook')) {
    const { id } = acknowledged
    if (seen.webhookRuns.has(id)) continue
    const answer = await api.send('GET', `/runs/${id}`)
    const run = (answer.json as { data?: Run }).data
    const { n } = (run?.result ?? {}) as { n?: string }
    if (run?.status !== 'succeeded' || n !== value)
      problems.push(`run ${id} of an acknowledged webhook: ${answer.status} ${answer.text.slice(0, 300)}`)
    else seen.webhookRuns.add(id)
  }
  return problems
}

/** Each file has the acknowledged content, or a later one whose reply was lost. */
const contents = async ({ api }: Target, ledger: Ledger): Promise<string[]> => {
  const problems: string[] = []
  for (const kind of ['file', 'upload'] as const) {
    const ids = new Map(
      ledger.acknowledged(kind).map(({ register, acknowledged }) => [register, acknowledged.id]),
    )
    for (const [path, values] of ledger.possible(kind)) {
      const response = await fetch(`${api.url}/v1/files/${ids.get(path)}/download`, {
        headers: { Authorization: `Bearer ${api.key}` },
      })
      const content = new Uint8Array(await response.arrayBuffer())
      if (!response.ok || !values.includes(sha256(content)))
        problems.push(`file ${path}: ${response.status}, ${content.length} bytes that were not written`)
    }
  }
  return problems
}

/** Each context variable has the acknowledged value, or a later one whose reply was lost. */
const variables = async (target: Target, ledger: Ledger): Promise<string[]> => {
  const problems: string[] = []
  for (const [key, values] of ledger.possible('variable')) {
    const { text, json } = await calledHook(target, '/variable', { key })
    const { hash = '' } = json as { hash?: string }
    if (!values.map(sha256).includes(hash)) problems.push(`variable ${key}: ${text}`)
  }
  return problems
}

/** The deployed build is the acknowledged one, or a later one whose reply was lost, and its code runs. */
const deployment = async (target: Target, ledger: Ledger): Promise<string[]> => {
  const values = ledger.possible('deployment').get(PROJECT)
  if (!values) return []
  const { text, json } = await calledHook(target, '/version', {})
  const { version = '' } = json as { version?: string }
  const { build_id } = await target.api.get<Build>(`/projects/${PROJECT}/builds/deployed`)
  return values.includes(version)
    ? []
    : [`deployed build ${build_id}: expected version ${values.join(' or ')}, got ${text}`]
}
