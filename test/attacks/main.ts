import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runFile } from '../support/runFile.ts'
import type { AttackResult } from './attack.ts'

const FILE_LIMITS = { timeoutMs: 900_000, lingerMs: 5000 }

/**
 * `npm run attacks [pattern…]` tries the attacks of test/attacks on real services and prints the table of
 * docs/security.md as Markdown. The exit code is 1 if one was not contained or a file failed.
 */
const main = async (): Promise<void> => {
  const patterns = process.argv.slice(2)
  const files = globSync('test/attacks/*.test.ts')
    .sort()
    .filter((file) => patterns.length === 0 || patterns.some((pattern) => file.includes(pattern)))
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
  const results = readFileSync(report, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as AttackResult)
  rmSync(dir, { recursive: true })
  process.stdout.write(`${tableOf(results)}\n`)
}

const tableOf = (results: readonly AttackResult[]): string => {
  const rows = results
    .toSorted((a, b) => (a.id + a.tier < b.id + b.tier ? -1 : 1))
    .map(({ id, attempt, severity, tier, outcome, reason }) =>
      [id, attempt, severity, tier, outcome, reason].map(cellOf).join(' | '),
    )
  const counts = Object.entries(Object.groupBy(results, ({ outcome }) => outcome))
    .map(([outcome, found]) => `${found?.length ?? 0} ${outcome}`)
    .join(', ')
  return [
    '| attack | attempt | severity if it succeeds | tier | outcome | evidence |',
    '|---|---|---|---|---|---|',
    ...rows.map((row) => `| ${row} |`),
    '',
    `${results.length} attempts: ${counts}`,
  ].join('\n')
}

const cellOf = (text: string): string => text.replaceAll(/\s+/g, ' ').replaceAll('|', '\\|').slice(0, 160)

await main()
