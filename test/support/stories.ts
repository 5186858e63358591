import { hasChromium } from './chromium.ts'
import { type StartedDashboard, startDashboard } from './openDashboard.ts'
import { suite } from './suite.ts'

interface Options<Context> {
  /** Variables of the service. */
  readonly env?: Readonly<Record<string, string>>
  /** What the stories need, once the service and the browser run. */
  readonly prepare?: (context: Context) => Promise<unknown>
  /** Ends what the file has started, before the service and the browser. It is also called if nothing was prepared. */
  readonly end?: (context: Partial<Context>) => Promise<unknown>
}

export interface Stories<Context> {
  (name: string, tell: (context: Context) => Promise<void>): void
  run(): void
}

/** The time of one story on an idle machine, at most. */
const TIMEOUT_MS = 120_000

/** A suite whose tests use the dashboard of a service of their own in a real browser. Without Chromium, all are skipped. */
export const stories = <Context extends StartedDashboard = StartedDashboard>(
  name: string,
  { env, prepare, end }: Options<Context> = {},
): Stories<Context> => {
  const isHere = hasChromium()
  const all = suite<Context>(name, { timeoutMs: TIMEOUT_MS })
  all.before(async (context) => {
    if (!isHere) return
    Object.assign(context, await startDashboard(env))
    await prepare?.(context)
  })
  all.after(async (context: Partial<Context>) => {
    await end?.(context)
    await context.stop?.()
  })
  const story = (title: string, tell: (context: Context) => Promise<void>): void =>
    isHere ? all(title, tell) : all.skip(title)
  return Object.assign(story, { run: () => all.run() })
}
