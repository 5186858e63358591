import { createHash } from 'node:crypto'
import type { Idempotency } from '../commands/idempotency.ts'
import { demandRunning } from '../commands/runs/demandRunning.ts'
import type { CommandDeps } from '../commands/deps.ts'
import { keyFrom } from '../events/idempotencyKey.ts'
import type { EnvCause } from '../events/event.ts'
import { jsonBytes } from '../events/rawJson.ts'
import { sortedKeys } from '../events/sortedKeys.ts'
import type { RunPlan } from '../events/run.ts'
import { type NewId, newId } from '../ids.ts'
import type { HostCall } from '../ports/runtime.ts'

type Start = Extract<HostCall, { op: 'send' | 'call' }>

type Deps = Pick<CommandDeps, 'aggregates'> & { readonly idempotency: Pick<Idempotency, 'once'> }

interface StartingRun {
  readonly plan: RunPlan
  readonly cause: EnvCause
  readonly signal: AbortSignal
}

/** The place at which an event is published, and its ids. */
interface StartPlace {
  readonly stream_id: string
  readonly by_run_id?: string
  readonly newId: NewId
}

/** A run waits longer than a client for another run with the same key: a dead node is known within this time. */
const WAIT_MS = 15_000

/**
 * Publishes the event of a `send` or `call`. Under an idempotency key, it is published once for all runs of the project, in
 * the stream of the run that first used the key, and every call has the same reply. Evaluated code has keys of its own, so
 * that it cannot occupy those of functions.
 */
export const startOnce = async <T>(
  deps: Deps,
  { plan, cause, signal }: StartingRun,
  call: Start,
  start: (place: StartPlace) => Promise<T>,
): Promise<T> => {
  const { run_id, stream_id, project_id, evaluator } = plan
  const own = { stream_id, by_run_id: run_id }
  if (call.idempotency_key === undefined) return start({ ...own, newId })
  const content = contentOf(call)
  const sorted = sortedKeys(content)
  const { value } = await deps.idempotency.once(
    {
      key: keyFrom(call.idempotency_key, 'idempotencyKey'),
      keyName: 'idempotencyKey',
      scope: [cause.env_id, project_id, evaluator?.id ?? 'functions', call.op],
      request: digestOf(call, content),
      ...(sorted !== content && { sorted: digestOf(call, sorted) }),
      cause,
      stream_id,
      waitMs: WAIT_MS,
      signal,
    },
    async (ids, first = stream_id) => {
      if (first === stream_id) return start({ ...own, newId: ids })
      await demandRunning(deps, plan) // the stream of another run cannot check it
      return start({ stream_id: first, newId: ids })
    },
  )
  return value
}

const contentOf = (call: Start): unknown => (call.op === 'send' ? call.event_data : call.args) ?? null

/** The same content may arrive parsed or as text. */
const digestOf = (call: Start, content: unknown): string =>
  createHash('sha256')
    .update(JSON.stringify(call.op === 'send' ? call.event_type : call.fn))
    .update(jsonBytes(content))
    .digest('hex')
