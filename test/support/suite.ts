import { suite as uvuSuite } from 'uvu'
import { messageOf } from '../../src/errors.ts'
import { PATIENCE, SLACK } from './patience.ts'

type Callback<Context> = (context: Context) => unknown

interface Hook<Context> {
  (callback: Callback<Context>): void
  each(callback: Callback<Context>): void
}

export interface Suite<Context> {
  (name: string, test: Callback<Context>): void
  only(name: string, test: Callback<Context>): void
  skip(name?: string, test?: Callback<Context>): void
  readonly before: Hook<Context>
  readonly after: Hook<Context>
  run(): void
}

interface Test<Context> {
  readonly name: string
  readonly callback: Callback<Context>
}

const TIMEOUT_MS = 20_000

/** Suites that were not run yet. Those that remain when the process ends were forgotten. */
const unrun = new Set<string>()

/** Whether the first test has begun: uvu runs the suites that it knows then, and reports a suite that comes later apart. */
let isRunning = false

process.on('exit', () => {
  if (unrun.size === 0 || process.exitCode) return
  process.exitCode = 1
  process.stderr.write(`Expected .run() on every suite, missing on: ${[...unrun].join(', ')}\n`)
})

/**
 * uvu's `suite`, which never fails silently. An error in `before` fails every test of the suite. An error in
 * `before.each` or `after.each` fails its test, and one in `after` the last test. A test or hook fails if it takes much
 * longer than `timeoutMs` (default 20 s), which an idle machine may need. A suite that has no tests, is never run, or is run after an await fails its file.
 */
export const suite = <Context extends object = Record<string, never>>(
  name: string,
  { timeoutMs = TIMEOUT_MS }: { timeoutMs?: number } = {},
): Suite<Context> => {
  const context = {} as Context // filled by the hooks
  const patienceMs = timeoutMs * PATIENCE * SLACK
  const tests: Test<Context>[] = []
  const chosen: Test<Context>[] = []
  let skipped = 0
  const hooks = { before: hooksOf<Context>(), after: hooksOf<Context>() }
  unrun.add(name)

  const run = () => {
    if (isRunning)
      throw new Error(
        `Expected .run() of "${name}" before the first test: move each await of the file above .run()`,
      )
    unrun.delete(name)
    const listed = chosen.length > 0 ? chosen : tests
    if (tests.length + chosen.length + skipped === 0) {
      listed.push({
        name: 'has tests',
        callback: () => Promise.reject(new Error('Expected tests in the suite, got none')),
      })
    }
    const inner = uvuSuite(name)
    let broken: Error | undefined
    const each = async (what: string, callbacks: readonly Callback<Context>[]) => {
      for (const callback of callbacks) await within(patienceMs, what, () => callback(context))
    }
    inner.before(async () => {
      isRunning = true
      broken = await failureOf(() => each('before', hooks.before.once))
    })
    for (const test of listed) {
      inner(test.name, async () => {
        const failures = [
          broken ??
            (await failureOf(async () => {
              await each('before.each', hooks.before.each)
              await within(patienceMs, 'the test', () => test.callback(context))
            })),
          broken ? undefined : await failureOf(() => each('after.each', hooks.after.each)),
          test === listed.at(-1) ? await failureOf(() => each('after', hooks.after.once)) : undefined,
        ]
        const failure = failures.find((error) => error !== undefined)
        if (failure) throw failure
      })
    }
    for (let left = chosen.length > 0 ? tests.length + skipped : skipped; left > 0; left--) inner.skip()
    inner.run()
  }

  return Object.assign(
    (test: string, callback: Callback<Context>) => void tests.push({ name: test, callback }),
    {
      only: (test: string, callback: Callback<Context>) => void chosen.push({ name: test, callback }),
      skip: () => void skipped++,
      before: hooks.before.hook,
      after: hooks.after.hook,
      run,
    },
  )
}

const hooksOf = <Context>() => {
  const once: Callback<Context>[] = []
  const each: Callback<Context>[] = []
  const hook: Hook<Context> = Object.assign((callback: Callback<Context>) => void once.push(callback), {
    each: (callback: Callback<Context>) => void each.push(callback),
  })
  return { once, each, hook }
}

/** The error that `work` threw, as an Error: uvu loses the suite when a test throws anything else. */
const failureOf = async (work: () => Promise<void>): Promise<Error | undefined> => {
  try {
    await work()
    return undefined
  } catch (thrown) {
    const error =
      thrown instanceof Error ? thrown : new Error(`Thrown: ${messageOf(thrown)}`, { cause: thrown })
    if (error.cause !== undefined) error.stack += `\n    caused by ${messageOf(error.cause)}` // uvu prints the stack only
    return error
  }
}

/** The timer keeps the process alive, so that a test that can never end fails by its name. */
const within = async (timeoutMs: number, what: string, work: () => unknown): Promise<void> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`Expected ${what} to end within ${timeoutMs} ms`)), timeoutMs)
  })
  try {
    await Promise.race([work(), late])
  } catch (error) {
    if (what !== 'the test' && error instanceof Error) error.message = `${what}: ${error.message}`
    throw error
  } finally {
    clearTimeout(timer)
  }
}
