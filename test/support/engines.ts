/** The real engines that tests can use, and the variable with the URL of each. */
const engines = {
  eventStore: { name: 'EventStoreDB', variable: 'SVC_TEST_EVENT_STORE' },
  mongodb: { name: 'MongoDB', variable: 'SVC_TEST_MONGODB' },
  redis: { name: 'Redis', variable: 'SVC_TEST_REDIS' },
  s3: { name: 'S3', variable: 'SVC_TEST_S3' },
} as const

export type Engine = keyof typeof engines
type Variables = Readonly<Record<string, string | undefined>>

/** The URL of an engine, for a caller that does not exercise it; null if no variable names it. */
export const namedUrl = (engine: Engine): string | null => process.env[engines[engine].variable] || null

/** Whether a variable names the engine. */
export const isNamed = (engine: Engine, env: Variables = process.env): boolean =>
  Boolean(env[engines[engine].variable])

export const isAnyNamed = (): boolean => (Object.keys(engines) as Engine[]).some((engine) => isNamed(engine))

/**
 * The URL of a running engine to test against, null if no variable names it. The call is reported to the runner: a
 * test that gets a URL exercises the engine.
 */
export const engineUrl = (engine: Engine): string | null => {
  const url = namedUrl(engine)
  if (!url) return null
  reportExercised(engines[engine].name)
  return url
}

/** Reports to the runner that these tests exercise an engine; directly called for the stand-in, which has no URL. */
export const reportExercised = (name: string): void => {
  process.stdout.write(`[exercised: ${name}]`)
}

/** Reports to the runner that these tests skipped an engine, and how to provide it. */
export const reportMissing = (what: string): void => {
  process.stdout.write(`[missing: ${what}]`)
}

/** The engines that a test file could not exercise. */
export const missingIn = (output: string): string[] =>
  [...output.matchAll(/\[missing: ([^\]]+)\]/g)].map(([, what = '']) => what)

/** The names that a test file reported in its output. */
export const exercisedIn = (output: string): string[] =>
  [...output.matchAll(/\[exercised: ([^\]]+)\]/g)].map(([, name = '']) => name)

/** One line about the engines that a run exercised and left out, without URLs: they may contain a password. */
export const engineReport = (exercised: ReadonlySet<string>, env: Variables = process.env): string => {
  const left = Object.values(engines).filter(({ name }) => !exercised.has(name))
  const unset = left.filter(({ variable }) => !env[variable])
  const unasked = left.filter(({ variable }) => env[variable])
  return [
    `engines: ${[...exercised].sort().join(', ') || 'none but the embedded'} exercised`,
    ...(unset.length > 0 ? [`${listOf(unset, 'name')} not (set ${listOf(unset, 'variable')})`] : []),
    ...(unasked.length > 0 ? [`${listOf(unasked, 'name')} set, but no test that ran asked for it`] : []),
  ].join('; ')
}

const listOf = <Key extends string>(rows: readonly Readonly<Record<Key, string>>[], key: Key): string =>
  rows.map((row) => row[key]).join(', ')
