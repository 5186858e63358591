import * as assert from 'uvu/assert'
import fc from 'fast-check'
import type { OpenRun, RunCommand } from '../../src/domain/run.ts'
import { retryIdOf } from '../../src/domain/run.ts'
import { isAppError } from '../../src/errors.ts'
import { stream, type StreamEvent } from '../../src/domain/stream.ts'
import type { RunPlan } from '../../src/events/run.ts'
import { SEED } from '../support/randomOf.ts'
import { suite } from '../support/suite.ts'

/** A run is `claimed` until its worker marks that its code may begin. */
type Status = OpenRun['status'] | 'claimed' | 'ended'
type Act =
  | 'claim'
  | 'begin'
  | 'return'
  | 'succeed'
  | 'fail'
  | 'failForGood'
  | 'lose'
  | 'cancel'
  | 'retry'
  | 'abandon'
  | 'abandonRetry'

/**
 * The life of one run (SPEC.md, Run status; decision 0030): the status after each act, and whether a next attempt is
 * requested. Whatever is not listed changes nothing.
 */
const LIFE: Readonly<Record<Status, Partial<Record<Act, (run: Chain) => Next>>>> = {
  requested: {
    claim: ({ marks }) => ({ status: marks ? 'claimed' : 'running' }),
    cancel: () => ({ status: 'ended' }),
    abandon: () => ({ status: 'ended' }),
  },
  running: {
    return: () => ({ status: 'requested' }),
    succeed: () => ({ status: 'ended' }),
    fail: (run) => ({ status: retriesOf(run) ? 'pending_retry' : 'ended' }),
    failForGood: () => ({ status: 'ended' }),
    lose: (run) => {
      if (run.once) return { status: 'ended' }
      if (run.lost < 3)
        return { status: 'ended', next: { ...run, attempt: run.attempt + 1, lost: run.lost + 1 } }
      return { status: retriesOf(run) ? 'pending_retry' : 'ended' }
    },
    cancel: () => ({ status: 'ended' }),
  },
  claimed: {
    begin: () => ({ status: 'running' }),
    return: () => ({ status: 'requested' }),
    succeed: () => ({ status: 'ended' }),
    fail: (run) => ({ status: retriesOf(run) ? 'pending_retry' : 'ended' }),
    failForGood: () => ({ status: 'ended' }),
    lose: () => ({ status: 'requested' }),
    cancel: () => ({ status: 'ended' }),
  },
  pending_retry: {
    retry: (run) => ({ status: 'ended', next: { ...run, attempt: run.attempt + 1 } }),
    cancel: () => ({ status: 'ended' }),
    abandonRetry: () => ({ status: 'ended' }),
  },
  ended: {},
}

interface Chain {
  readonly retries: number
  readonly once: boolean
  /** Its worker marks the begin of its code. */
  readonly marks: boolean
  readonly attempt: number
  readonly lost: number
}

interface Next {
  readonly status: Status
  readonly next?: Chain
}

const retriesOf = ({ retries, attempt, lost }: Chain): boolean => attempt - lost <= retries

const NOW = '2026-05-01T10:00:00.000Z'
const error = { code: 'function_failed', message: 'broke' }
const worker = { worker_id: 'w', now: NOW, error }

const commandOf = (act: Act, run_id: string): RunCommand => {
  const one = { run_id, ...worker }
  switch (act) {
    case 'claim':
      return { type: 'ClaimRun', ...one }
    case 'begin':
      return { type: 'BeginRun', ...one }
    case 'return':
      return { type: 'ReturnRun', ...one }
    case 'succeed':
      return { type: 'SucceedRun', ...one, result: { value: 1 } }
    case 'fail':
      return { type: 'FailRun', ...one }
    case 'failForGood':
      return { type: 'FailRun', ...one, isFinal: true }
    case 'lose':
      return { type: 'LoseRun', ...one }
    case 'cancel':
      return { type: 'CancelRun', ...one }
    case 'retry':
      return { type: 'RetryRun', ...one, retry_run_id: retryIdOf(run_id) }
    case 'abandon':
      return { type: 'AbandonRun', ...one, was: 'requested' }
    case 'abandonRetry':
      return { type: 'AbandonRun', ...one, was: 'pending_retry' }
    default:
      return act satisfies never
  }
}

const planOf = ({ retries, once, marks, attempt, lost }: Chain): RunPlan => ({
  run_id: '00000000-0000-8000-8000-000000000001',
  stream_id: 's',
  run_type: 'event',
  build_id: 'b',
  project_id: 'p',
  project_name: 'shop',
  target: { ns: 'm', var: 'f' },
  attempt,
  ...(lost > 0 && { lost }),
  ...(once && { once }),
  ...(marks && { marks_begin: true }),
  ...(retries > 0 && { retry: { attempts: retries, delay: 1000 } }),
})

const statusOf = (run: OpenRun): Status =>
  run.status === 'running' && !run.mayHaveBegun ? 'claimed' : run.status

/** The facts of a command; none if it is refused. */
const decided = (command: RunCommand, state: ReturnType<typeof stream.initial>): readonly StreamEvent[] => {
  try {
    return stream.decide(command, state)
  } catch (error) {
    if (isAppError(error, 'not_found')) return []
    throw error
  }
}

const life = suite(`the life of a run (seed ${SEED})`)

const acts = fc.array(
  fc.record({
    act: fc.constantFrom<Act>(
      'claim',
      'claim',
      'claim',
      'begin',
      'begin',
      'return',
      'succeed',
      'fail',
      'fail',
      'failForGood',
      'lose',
      'lose',
      'cancel',
      'retry',
      'retry',
      'abandon',
      'abandonRetry',
    ),
    /** The attempt that it is about. */
    place: fc.nat(4),
    isRecent: fc.boolean(),
  }),
  { maxLength: 40, size: 'max' },
)

life('follows the documented states, whatever is sent in which order', () => {
  const property = fc.property(acts, fc.nat(2), fc.boolean(), fc.boolean(), (sent, retries, once, marks) => {
    const first: Chain = { retries, once, marks, attempt: 1, lost: 0 }
    const plan = planOf(first)
    const attempts = [{ id: plan.run_id, chain: first, status: 'requested' as Status }]
    let state = stream.initial()
    let revision = 0
    const store = (facts: readonly StreamEvent[]): void => {
      for (const event of facts)
        state = stream.evolve(state, {
          event,
          revision: revision++,
          metadata: { env_id: 'e', correlation_id: 'c' },
        })
    }
    store(stream.decide({ type: 'RequestRun', env_id: 'e', plan, create: true }, state))
    for (const { act, place, isRecent } of sent) {
      const at = isRecent ? attempts.length - 1 : Math.min(place, attempts.length - 1)
      const one = attempts[at]
      assert.ok(one)
      const next = LIFE[one.status][act]?.(one.chain)
      // To cancel an attempt that has ended cancels the one of its chain that is open.
      const after = attempts.slice(at + 1).find(({ status }) => status !== 'ended')
      if (!next && act === 'cancel' && after) after.status = 'ended'
      const facts = decided(commandOf(act, one.id), state)
      store(facts)
      if (next) {
        one.status = next.status
        if (next.next) attempts.push({ id: retryIdOf(one.id), chain: next.next, status: 'requested' })
      }
      const open = attempts.filter(({ status }) => status !== 'ended')
      assert.equal(
        [...state.runs].map(([id, run]) => [id, statusOf(run), run.plan.attempt, run.plan.lost ?? 0]).sort(),
        open.map(({ id, status, chain }) => [id, status, chain.attempt, chain.lost]).sort(),
        `${act} of attempt ${at + 1} in ${JSON.stringify(sent)}`,
      )
    }
  })
  fc.assert(property, { seed: SEED, numRuns: 500 })
})

life.run()
