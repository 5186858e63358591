import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { startCli } from '../test/support/cli.ts'
import { EMBEDDED } from '../test/support/installation.ts'
import type { Figure } from './figure.ts'
import { percentile } from './load.ts'
import { until } from './until.ts'

const MODULES = 20
const SAVES = 20

const sourceOf = (index: number, version: number): string =>
  [
    `import { fn } from 'svc'`,
    ...(index === 0 ? [] : [`import { version as before } from './m${index - 1}.ts'`]),
    `export const version = () => ${version}${index === 0 ? '' : ' + before()'}`,
    `export const handler = fn({ 'on-event': 'bench:${index}' }, async (event: { data: unknown }) => [event.data, version()])`,
    '',
  ].join('\n')

/** The time from a save in a project of 20 modules to the line that reports it as live. */
export const dev = async (): Promise<Figure[]> => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-bench-'))
  mkdirSync(join(folder, 'src'))
  const save = (index: number, version: number) =>
    writeFileSync(join(folder, 'src', `m${index}.ts`), sourceOf(index, version))
  for (let index = 0; index < MODULES; index++) save(index, 0)
  const running = startCli(['dev', folder, '--json', '--port', '0'], { env: EMBEDDED })
  const lives = () => running.out().split('"type":"live"').length - 1
  try {
    const began = performance.now()
    await until(() => lives() === 1)
    const start = performance.now() - began
    const took: number[] = []
    for (let n = 1; n <= SAVES; n++) {
      await delay(200) // as a person, who saves nothing while the service still stores the last build
      const saved = performance.now()
      save(n % MODULES, n)
      await until(() => lives() === n + 1)
      took.push(performance.now() - saved)
    }
    took.sort((a, b) => a - b)
    return [
      { what: 'svc dev, 20 modules: start → live', value: start, unit: 'ms' },
      { what: '  save → live, p50', value: percentile(took, 0.5), unit: 'ms', atMost: 200 },
      { what: '  save → live, p90', value: percentile(took, 0.9), unit: 'ms' },
    ]
  } finally {
    running.process.kill('SIGTERM')
    await running.ended
    rmSync(folder, { recursive: true, force: true })
  }
}
