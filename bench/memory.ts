import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import type { Figure } from './figure.ts'
import { BenchServer } from './server.ts'

const HOOK = {
  'hook.js':
    "import { fn } from 'svc'\nexport const hook = fn({ webhook: { service: 'bench', path: '/hook' } }, () => 1)\n",
}

/** Resident megabytes, and the proportional share of them (PSS). */
const memoryOf = (pid: number): { rss: number; pss: number } => {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')
  const field = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text)?.[1] ?? 0) / 1024
  return { rss: field('Rss'), pss: field('Pss') }
}

const childrenOf = (pid: number): number[] =>
  readdirSync(`/proc/${pid}/task`).flatMap((task) =>
    readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number),
  )

/** Memory after the first start with one deployed build and one warm child, ten seconds idle. Linux only. */
export const memory = async (): Promise<Figure[]> => {
  const began = performance.now()
  const first = await BenchServer.start()
  const firstStart = performance.now() - began
  let figures: Figure[]
  try {
    const { '/hook': url = '' } = await first.deploy(HOOK)
    await fetch(url, { method: 'POST' })
    await delay(3000)
    const pid = first.process.pid ?? 0
    const all = [pid, ...childrenOf(pid)].map(memoryOf)
    const sum = (part: 'rss' | 'pss') => all.reduce((total, { [part]: value }) => total + value, 0)
    figures = [
      {
        what: `resident, idle, first start, server + ${all.length - 1} child`,
        value: sum('rss'),
        unit: 'MB',
        atMost: 150,
      },
      { what: '  of which the server', value: all[0]?.rss ?? 0, unit: 'MB' },
      { what: '  sum of PSS', value: sum('pss'), unit: 'MB' },
    ]
  } finally {
    await first.stop({ keep: true })
  }
  const again = performance.now()
  const second = await BenchServer.start(first.dir)
  const secondStart = performance.now() - again
  await second.stop()
  return [
    ...figures,
    { what: 'start to ready, empty directory', value: firstStart, unit: 'ms' },
    { what: 'start to ready, existing directory', value: secondStart, unit: 'ms', atMost: 1000 },
  ]
}
