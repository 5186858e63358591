import { globSync, readFileSync } from 'node:fs'
import { parseArgs, stripVTControlCharacters } from 'node:util'
import { clock } from '../../src/clock.ts'
import { engineReport, exercisedIn, missingIn } from './engines.ts'
import { type Job, passes } from './passes.ts'
import { type FileResult, stopAll } from './runFile.ts'

/** With more failures than this, the change is at fault, not the load of the machine. */
const MAX_RETRIES = 8

/** Characters of an error that are repeated at the end. */
const MAX_ERROR = 500

interface Outcome {
  readonly passed: number
  readonly failures: number
  /** The name of the file, its failed tests with their errors, and its other problems. */
  readonly summary: readonly string[]
}

/**
 * `npm test [pattern…]` runs each test file whose path contains a pattern (default: all) in a process of its own, and
 * the tests of the API again on other engines (passes.ts). With `--minutes N`, no file starts again after N minutes, and
 * the files that were left out are reported. With `--retry`, a file that fails runs a second time after the others of its
 * pass, alone, and the second result counts; files that pass only then are reported as UNSTEADY. The line before the last
 * names the engines that were exercised. The last line is `N passed, N failed`, in tests. The exit code is 1 on any failure.
 */
const main = async (): Promise<void> => {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      'timeout-ms': { type: 'string', default: '720000' },
      'linger-ms': { type: 'string', default: '5000' },
      minutes: { type: 'string', default: 'Infinity' },
      retry: { type: 'boolean', default: false },
    },
  })
  const limits = { timeoutMs: Number(values['timeout-ms']), lingerMs: Number(values['linger-ms']) }
  const lastStart = clock.monotonic() + Number(values.minutes) * 60_000
  const files = globSync('test/**/*.test.ts')
    .sort()
    .filter((file) => positionals.length === 0 || positionals.some((pattern) => file.includes(pattern)))
  if (files.length === 0) {
    process.stdout.write(
      `Expected test files${positionals.length ? ` matching ${positionals.join(', ')}` : ''}, found none\n`,
    )
    return finish(0, 1)
  }

  const exercised = new Set<string>()
  const missing = new Set<string>()
  /** Repeated at the end: a log is often read from there, and may be cut before. */
  const failedTests: string[] = []
  const unsteady: string[] = []
  const leftOut: string[] = []
  let passed = 0
  let failed = 0
  const run = async (job: Job): Promise<Outcome> => {
    const name = nameOf(job)
    const result = await job.run(limits)
    const problems = [...result.problems, ...problemsOf(job.file)]
    const failures = Math.max(result.total - result.passed, problems.length > 0 ? 1 : 0)
    for (const engine of exercisedIn(result.output)) exercised.add(engine)
    for (const what of missingIn(result.output)) missing.add(what)
    process.stdout.write(failures === 0 ? lineOf(name, result) : reportOf(name, result, problems))
    return {
      passed: result.passed,
      failures,
      summary: [name, ...failedIn(result.output), ...problems.map(indented)],
    }
  }
  const count = (outcome: Outcome): void => {
    passed += outcome.passed
    failed += outcome.failures
    if (outcome.failures > 0) failedTests.push(...outcome.summary)
  }
  for await (const { jobs, atATime } of passes(files)) {
    const waiting = [...jobs]
    const failing = new Map<Job, Outcome>()
    const work = async () => {
      for (let job = waiting.shift(); job !== undefined; job = waiting.shift()) {
        if (job.again && clock.monotonic() > lastStart) {
          leftOut.push(nameOf(job))
          continue
        }
        const outcome = await run(job)
        if (outcome.failures > 0 && values.retry) failing.set(job, outcome)
        else count(outcome)
      }
    }
    await Promise.all(Array.from({ length: atATime }, work))
    for (const [job, first] of failing) {
      const second = failing.size > MAX_RETRIES ? first : await run(job)
      if (second.failures === 0) unsteady.push(...first.summary)
      count(second)
    }
  }
  if (failedTests.length > 0) process.stdout.write(['failures:', ...failedTests, ''].join('\n'))
  if (unsteady.length > 0)
    process.stdout.write(['UNSTEADY, failed once and passed alone:', ...unsteady, ''].join('\n'))
  if (leftOut.length > 0) process.stdout.write(`NOT EXERCISED for lack of time: ${leftOut.join(', ')}\n`)
  for (const what of missing) process.stdout.write(`NOT EXERCISED: ${what}\n`)
  process.stdout.write(`${engineReport(exercised)}\n`)
  finish(passed, failed)
}

const lineOf = (file: string, { passed, skipped, ms }: FileResult): string =>
  `ok    ${file}  ${passed} passed${skipped > 0 ? `, ${skipped} skipped` : ''}  ${Math.round(ms)} ms\n`

const reportOf = (
  file: string,
  { passed, total, ms, output }: FileResult,
  problems: readonly string[],
): string =>
  [
    `FAIL  ${file}  ${passed} of ${total} passed  ${Math.round(ms)} ms`,
    output.trimEnd(),
    ...problems.map((problem) => `  ${file}: ${problem}`),
    '',
  ].join('\n')

const nameOf = ({ file, on }: Job): string => (on === undefined ? file : `${file} (on ${on})`)

const indented = (line: string): string => `  ${line}`

/** The failed tests in what a file printed, each with the first line of its error. */
const failedIn = (output: string): string[] =>
  [...stripVTControlCharacters(output).matchAll(/^ +FAIL +(.+)\n(?: +(.+))?/gm)].flatMap(
    ([, name = '', error = '']) => [
      indented(name),
      ...(error === '' ? [] : [indented(indented(error.slice(0, MAX_ERROR)))]),
    ],
  )

/** Problems that only the source shows: `.only` leaves tests out, and uvu's own suites let errors pass. */
const problemsOf = (file: string): string[] => {
  const source = readFileSync(file, 'utf8')
  return [
    ...(/^\s*\w+\.only\(/m.test(source) ? ['expected no .only in a committed test'] : []),
    ...(/ from 'uvu'/.test(source) ? ["expected suites from test/support/suite.ts, not 'uvu'"] : []),
  ]
}

const finish = (passed: number, failed: number): void => {
  process.stdout.write(`${passed} passed, ${failed} failed\n`)
  process.exitCode = failed === 0 ? 0 : 1
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(signal, () => {
    stopAll()
    process.kill(process.pid, signal)
  })
}

await main()
