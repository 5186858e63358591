import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readArguments } from '../support/commandLine.ts'
import { runFile } from '../support/runFile.ts'
import type { AttackResult } from './attack.ts'
import { cellOf, DOCUMENT, tableOf, withResults } from './table.ts'

const FILE_LIMITS = { timeoutMs: 900_000, lingerMs: 5000 }

const HELP = `npm run attacks [-- [PATTERN…] [--write]]

Tries the attacks of test/attacks on real services and prints each with its evidence, then the table of docs/security.md.
The exit code is 1 if an attack was not contained or a file failed.

  PATTERN  only files whose path contains it, such as rotation
  --write  update the table of docs/security.md
`

const main = async (): Promise<void> => {
  const { values, positionals, refuse } = readArguments('attacks', HELP, {
    write: { type: 'boolean', default: false },
  })
  const every = globSync('test/attacks/*.test.ts').sort()
  const vain = positionals.find((pattern) => !every.some((file) => file.includes(pattern)))
  if (vain !== undefined) refuse(`no file of test/attacks contains ${JSON.stringify(vain)} in its path`)
  const files = every.filter(
    (file) => positionals.length === 0 || positionals.some((pattern) => file.includes(pattern)),
  )
  const results = await resultsOf(files)
  for (const { id, tier, outcome, reason } of results)
    process.stdout.write(`${id} (${tier}) ${outcome}: ${cellOf(reason)}\n`)
  const counts = Map.groupBy(results, ({ outcome }) => outcome)
  process.stdout.write(`\n${tableOf(results)}\n\n${results.length} attempts: `)
  process.stdout.write(`${[...counts].map(([outcome, found]) => `${found.length} ${outcome}`).join(', ')}\n`)
  if (!values.write) return
  const others = positionals.length > 0
  writeFileSync(DOCUMENT, withResults(readFileSync(DOCUMENT, 'utf8'), results, { others }))
}

const resultsOf = async (files: readonly string[]): Promise<AttackResult[]> => {
  const dir = mkdtempSync(join(tmpdir(), 'svc-attacks-'))
  const report = join(dir, 'report')
  writeFileSync(report, '')
  for (const file of files) {
    process.stderr.write(`${file}\n`)
    const { total, passed, problems, output } = await runFile(file, FILE_LIMITS, {
      SVC_ATTACK_REPORT: report,
    })
    if (passed === total && problems.length === 0) continue
    process.exitCode = 1
    process.stderr.write(`${output}\n${problems.join('\n')}\n`)
  }
  const lines = readFileSync(report, 'utf8').split('\n')
  rmSync(dir, { recursive: true })
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as AttackResult)
}

await main()
