import { mkdirSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { readArguments } from '../support/commandLine.ts'
import { killAgainAndAgain } from './kills.ts'
import { powerCuts, upTo } from './campaign.ts'
import { clusterProblem, openClusterOfRoles, openSingle, stopAgainAndAgain } from './stops.ts'
import { checkPowerCuts } from './powerCuts.ts'
import { readRecording } from './recording.ts'
import { straceProblem } from './strace.ts'

const HELP = `npm run crash [kills] [stops] [power] [-- options]

  kills            kill the service under load, and start it again on its data directory
  stops            stop the service with SIGTERM under load, and with the engines in SVC_TEST_* also a cluster of it
  power            record the system calls of the service, and open what a power cut may leave (needs strace)

  --seed N         the seed (default: a new one)
  --kills N        number of kills (default: 200)
  --on ENGINES     stop only the service with "embedded" engines, or only the "cluster"
  --stops N        number of stops of each (default: 20)
  --states N       number of states after a power cut (default: 10000)
  --state N        only this state, of --seed and --recording
  --recording DIR  a recording of an earlier run, instead of a new one
  --load-ms N      time under load of each recorded life (default: 6000)
  --service-every N  start the whole service on every so many states (default: 100)
  --dir DIR        an empty or new folder for recordings and findings (default: a new one)
`

const PARTS: readonly string[] = ['kills', 'stops', 'power']

const report = (line: string): void => void process.stdout.write(`${line}\n`)

/** Stops one service, and a cluster if its engines are named. Resolves with the number of findings. */
const stopped = async (
  stops: number,
  { dir, on }: { readonly dir: string; readonly on: string | undefined },
): Promise<number> => {
  const problem = clusterProblem()
  let findings = 0
  for (const [what, open] of [
    ['embedded', () => openSingle(join(dir, 'stopped'))],
    ['cluster', openClusterOfRoles],
  ] as const) {
    if (on !== undefined && on !== what) continue
    if (what === 'cluster' && problem !== null) {
      report(`stops, ${what}: not tested, because ${problem}`)
      continue
    }
    const service = await open()
    try {
      const problems = await stopAgainAndAgain({ service, stops, report })
      for (const line of problems) report(`  ${line}`)
      report(`stops, ${what}: ${problems.length} findings`)
      findings += problems.length
    } finally {
      await service.close()
    }
  }
  return findings
}

/**
 * `npm run crash` kills and stops the service, and simulates power cuts. The exit code is 1 if anything that was
 * acknowledged is lost, if a run does not end, or if the service does not start afterwards.
 */
const main = async (): Promise<number> => {
  const { values, positionals, oneOf, wholeNumber } = readArguments('crash', HELP, {
    seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
    kills: { type: 'string', default: '200' },
    stops: { type: 'string', default: '20' },
    on: { type: 'string' },
    states: { type: 'string', default: '10000' },
    state: { type: 'string' },
    recording: { type: 'string' },
    'load-ms': { type: 'string', default: '6000' },
    'service-every': { type: 'string', default: '100' },
    dir: { type: 'string' },
  })
  for (const name of positionals) oneOf('a part', name, PARTS)
  if (values.on !== undefined) oneOf('--on', values.on, ['embedded', 'cluster'])
  const numbers = {
    seed: wholeNumber('seed', values.seed, 0),
    kills: wholeNumber('kills', values.kills),
    stops: wholeNumber('stops', values.stops),
    states: wholeNumber('states', values.states),
    state: values.state === undefined ? undefined : wholeNumber('state', values.state, 0),
    loadMs: wholeNumber('load-ms', values['load-ms']),
    serviceEvery: wholeNumber('service-every', values['service-every']),
  }
  const parts = positionals.length > 0 ? positionals : PARTS
  const problem = parts.includes('power') && values.recording === undefined ? straceProblem() : null
  if (problem !== null) {
    process.stderr.write(`npm run crash power: ${problem}. Without it, use npm run crash kills.\n`)
    return 2
  }
  const { seed, kills, states: wanted } = numbers
  const dir = values.dir === undefined ? mkdtempSync(join(tmpdir(), 'svc-crash-')) : resolve(values.dir)
  mkdirSync(dir, { recursive: true })
  report(`seed ${seed}, folder ${dir}`)
  let findings = 0
  if (parts.includes('kills')) {
    const problems = await killAgainAndAgain({ dataDir: join(dir, 'killed'), kills, seed, report })
    for (const line of problems) report(`  ${line}`)
    report(`kills: ${problems.length} findings`)
    findings += problems.length
  }
  if (parts.includes('stops')) findings += await stopped(numbers.stops, { dir, on: values.on })
  if (parts.includes('power')) {
    const given = {
      dir,
      seed,
      loadMs: numbers.loadMs,
      serviceEvery: numbers.serviceEvery,
      report,
    }
    const {
      states,
      services,
      findings: found,
    } = values.recording === undefined
      ? await powerCuts({ ...given, states: wanted })
      : await checkPowerCuts({
          ...given,
          recording: await readRecording(values.recording),
          keepDir: dir,
          states: numbers.state === undefined ? upTo(wanted) : [numbers.state],
        })
    report(`power: ${states} states, ${services} services, ${found.length} findings`)
    findings += found.length
  }
  return findings > 0 ? 1 : 0
}

process.exitCode = await main()
