import type { Input } from '../../sdk/wire.ts'
import { argumentsOf, NotStarted } from './functions.ts'
import type { Run } from './run.ts'
import type { Stacks } from './stacks.ts'
import { describe } from './thrown.ts'
import { webhookResult } from './webhookResult.ts'

/** Ends the run with the value that the code returns, or with the error that it throws. */
export const execute = async (run: Run, code: () => unknown, stacks: Stacks): Promise<void> => {
  try {
    run.succeed(await code())
  } catch (thrown) {
    if (thrown instanceof NotStarted) run.fail(thrown.code, thrown.described)
    else run.fail(run.isOutage(thrown) ? 'unavailable' : 'function_failed', describe(thrown, stacks))
  }
}

/** Calls the function with its input. `kept` are the bytes of the input's large value. */
export const callWith = (called: (...args: unknown[]) => unknown, input: Input, kept?: Buffer): unknown => {
  const returned = called(...argumentsOf(input, kept))
  return input.kind === 'webhook' ? Promise.resolve(returned).then(webhookResult) : returned
}
