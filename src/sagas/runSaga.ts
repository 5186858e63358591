import { isRetryable, messageOf, stackOf } from '../errors.ts'
import type { Logger } from '../logger.ts'
import { Backoff } from '../loops/backoff.ts'
import { Alarms } from './alarms.ts'
import type { Saga, Step } from './saga.ts'

/** Pauses between attempts of a command while an engine is unavailable. */
const PAUSES = { firstMs: 500, longestMs: 2000 }

/** A command in progress. It has no signal until it must pause, because a signal for each command costs time. */
interface Work {
  isDropped: boolean
  pause?: AbortController
}

interface Driver {
  readonly logger: Logger
  readonly clock: { now(): number }
  /** Closed when the saga ends. */
  readonly alarms?: Alarms
}

/**
 * Runs a saga until the signal aborts. Rejects when its inputs or its core fail; it may then be started again.
 * S1: inputs reach the core one at a time, in order.
 * S2: a command is retried until it succeeds while its errors are retryable. One line is logged per outage.
 * S3: a command with any other error is logged with its stack and not retried.
 */
export const runSaga = async <State, Input, Command>(
  saga: Saga<State, Input, Command>,
  { logger, clock, alarms = new Alarms() }: Driver,
  signal: AbortSignal,
): Promise<void> => {
  const ended = new AbortController()
  const until = AbortSignal.any([signal, ended.signal])
  const failed = Promise.withResolvers<never>()
  const underWay = new Map<string, Work>()
  let state = saga.initial
  let isAway = false

  const take = (input: Input): void => {
    if (until.aborted) return
    const reaction = saga.react(state, input, clock.now())
    state = reaction.state
    for (const step of reaction.steps) perform(step)
  }
  const takeLater = (input: Input): void => {
    try {
      take(input)
    } catch (error) {
      failed.reject(error)
    }
  }
  const perform = (step: Step<Input, Command>): void => {
    switch (step.do) {
      case 'setAlarm':
        return alarms.set(step.key, step.at, () => takeLater(step.input))
      case 'drop':
        alarms.clear(step.key)
        drop(step.key)
        return
      case 'carryOut':
        if (!underWay.has(step.key)) carryOut(step.key, step.command).catch(failed.reject)
        return
      default:
        return step satisfies never
    }
  }
  const drop = (key: string): void => {
    const work = underWay.get(key)
    if (!work) return
    work.isDropped = true
    work.pause?.abort()
    underWay.delete(key)
  }
  const carryOut = async (key: string, command: Command): Promise<void> => {
    const work: Work = { isDropped: false }
    underWay.set(key, work)
    const outcome = await attempt(key, command, work)
    if (underWay.get(key) === work) underWay.delete(key)
    if (outcome !== undefined && isWanted(work)) takeLater(outcome)
  }
  const isWanted = (work: Work): boolean => !work.isDropped && !until.aborted
  const attempt = async (key: string, command: Command, work: Work): Promise<Input | undefined> => {
    let backoff: Backoff | undefined
    for (;;) {
      try {
        const outcome = await saga.carryOut(command, until)
        isAway = false
        return outcome
      } catch (error) {
        if (!isWanted(work)) return undefined
        if (!isRetryable(error)) {
          logger.error(`The saga ${saga.name} failed to carry out a command and skips it`, {
            key,
            error: stackOf(error), // S3
          })
          return saga.afterFailure?.(command)
        }
        if (!isAway)
          logger.warn(`The saga ${saga.name} cannot carry out its commands and retries until it succeeds`, {
            key,
            error: messageOf(error), // S2
          })
        isAway = true
      }
      backoff ??= new Backoff(PAUSES)
      work.pause ??= new AbortController()
      await backoff.pause({ signal: AbortSignal.any([until, work.pause.signal]) })
      if (!isWanted(work)) return undefined
    }
  }
  const follow = async (): Promise<void> => {
    for await (const input of saga.inputs(until)) take(input) // S1
  }

  try {
    await Promise.race([follow(), failed.promise])
  } finally {
    ended.abort()
    alarms.close()
  }
}
