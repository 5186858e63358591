import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { npmPack } from '../test/support/installed.ts'
import type { Figure } from './figure.ts'
import { until } from './until.ts'

/** What would lead svc to another service, or npm to another folder. The registry of this machine remains. */
const OWN = /^(?:SVC_|PORT$|HOST$|npm_(?:package|lifecycle|config_(?:local_prefix|prefix|cache)))/

/** Starts a command as a person does in a folder, with an empty cache of npm. */
const starting = (folder: string, [file = '', ...args]: readonly string[]) => {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !OWN.test(name)))
  env['npm_config_cache'] = join(folder, '../cache')
  // A group of its own, because a terminal sends Ctrl-C to npx and to svc.
  const child = spawn(file, args, { cwd: folder, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  let out = ''
  for (const pipe of [child.stdout, child.stderr])
    pipe.setEncoding('utf8').on('data', (text: string) => (out += text))
  return { child, out: () => out, ended: once(child, 'close') as Promise<[number | null]> }
}

/** The seconds until a command has ended. */
const timeOf = async (folder: string, command: readonly string[], prints = ''): Promise<number> => {
  const began = performance.now()
  const { out, ended } = starting(folder, command)
  const [code] = await ended
  if (code !== 0 || !out().includes(prints))
    throw new Error(`Expected ${command.join(' ')} to end with 0 and ${prints}, got ${code}: ${out()}`)
  return (performance.now() - began) / 1000
}

/** The first minute of the README: from an empty folder, with an empty cache of npm, to the result of a function of the folder. */
export const firstMinute = async (): Promise<Figure[]> => {
  const tarball = await npmPack()
  const scratch = mkdtempSync(join(tmpdir(), 'svc-bench-'))
  const folder = join(scratch, 'shop')
  mkdirSync(folder)
  try {
    const install = await timeOf(folder, ['npm', 'i', '-D', tarball])
    const init = await timeOf(folder, ['npx', 'svc', 'init'])
    const began = performance.now()
    const dev = starting(folder, ['npx', 'svc', 'dev'])
    try {
      await until(() => {
        if (dev.child.exitCode !== null) throw new Error(`Expected svc dev to go on, got ${dev.out()}`)
        return dev.out().includes('npx svc runs') // the last line of what it prints at the start
      })
      const live = (performance.now() - began) / 1000
      const run = await timeOf(folder, ['npx', 'svc', 'run', 'hello/add', '1', '2'], '3\n')
      const total = install + init + live + run
      return [
        { what: 'first minute: npm i, empty cache', value: install, unit: 's' },
        { what: '  npx svc init', value: init, unit: 's' },
        { what: '  npx svc dev → live', value: live, unit: 's' },
        { what: '  npx svc run hello/add 1 2', value: run, unit: 's' },
        { what: '  total', value: total, unit: 's', atMost: 60 },
      ]
    } finally {
      process.kill(-(dev.child.pid ?? 0), 'SIGINT')
      await dev.ended
    }
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}
