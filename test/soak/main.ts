import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Finding } from './check/finding.ts'
import { readArguments } from '../support/commandLine.ts'
import type { Records } from './records.ts'
import { soak, type SoakResult } from './soak.ts'

/** Findings that are printed with their facts; all are in the file. */
const PRINTED = 20

const HELP = `npm run soak [-- options]

Loads a service on the engines in SVC_TEST_* (default: embedded) while its parts fail, and then compares the log, the read
models, the transcripts and the records of clients. The exit code is 1 if it finds a difference.

  --minutes N  time under load (default: 30)
  --seed N     the seed of the load and the faults (default: 1)
  --pause MS   the longest pause of a client between two requests; read models that scan, as those of FerretDB, fall
               behind a faster load on a slow machine
`

const main = async (): Promise<void> => {
  const { values, positionals, refuse, wholeNumber } = readArguments('soak', HELP, {
    minutes: { type: 'string', default: '30' },
    seed: { type: 'string', default: '1' },
    pause: { type: 'string' },
  })
  const [extra] = positionals
  if (extra !== undefined) refuse(`expected no argument, got ${JSON.stringify(extra)}`)
  const positive = (option: string, text: string): number =>
    Number(text) > 0 && Number.isFinite(Number(text))
      ? Number(text)
      : refuse(`expected --${option} to be a number above 0, got ${JSON.stringify(text)}`)
  const minutes = positive('minutes', values.minutes)
  const seed = wholeNumber('seed', values.seed, 0)
  const pauseMs = values.pause === undefined ? undefined : positive('pause', values.pause)
  const result = await soak({ minutes, seed, pauseMs, report: print })
  const { faults, findings, records } = result
  for (const finding of findings.slice(0, PRINTED)) printFinding(finding, seed)
  if (findings.length > 0) print(`everything is in ${keep(result)}`)
  print(
    `seed ${seed}, ${minutes} minutes: ${faults} faults; compared ${sizesOf(records)}; ${findings.length} findings`,
  )
  process.exitCode = findings.length === 0 ? 0 : 1
}

const sizesOf = ({ log, publications, effects, transcripts, models }: Records): string => {
  const frames = transcripts.reduce((sum, { frames }) => sum + frames.length, 0)
  const docs = models.reduce((sum, { docs }) => sum + docs.length, 0)
  return (
    `${log.length} facts, ${publications.length} publications, ${effects.length} starts of functions, ` +
    `${frames} received events of ${transcripts.length} followers, ${docs} documents`
  )
}

const print = (line: string): void => void process.stdout.write(`${line}\n`)

const printFinding = ({ rule, message, facts }: Finding, seed: number): void => {
  print(`FINDING (seed ${seed}) ${rule}: ${message}`)
  for (const fact of facts) print(`  ${fact}`)
}

/** Keeps the records and the output of the nodes. Returns their directory. */
const keep = ({ findings, records, outputs }: SoakResult): string => {
  const dir = mkdtempSync(join(tmpdir(), 'svc-soak-'))
  const { log, ...others } = records
  writeFileSync(join(dir, 'findings.json'), JSON.stringify(findings, null, 1))
  writeFileSync(join(dir, 'log.jsonl'), log.map((fact) => `${JSON.stringify(fact)}\n`).join(''))
  writeFileSync(join(dir, 'records.json'), JSON.stringify(others))
  for (const [name, output] of outputs) writeFileSync(join(dir, `${name}.log`), output)
  return dir
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1)) // ends the nodes too

await main()
