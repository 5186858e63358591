import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { type Checked, checkPowerCuts, remake } from './powerCuts.ts'
import { record } from './record.ts'
import type { Recording } from './recording.ts'

/** The lives of the recorded service. A start after a kill repairs, and one after a stop finds everything settled. */
const ENDINGS = ['SIGKILL', 'SIGKILL', 'SIGTERM', 'SIGKILL'] as const

/** Power cuts after which another life is recorded, in which the power is cut again. */
const SECOND_CUTS = 4

/** The part of the states that is for second cuts. */
const SECOND_PART = 0.2

interface Asked {
  readonly dir: string
  readonly seed: number
  readonly states: number
  readonly loadMs: number
  readonly serviceEvery: number
  readonly report: (line: string) => void
}

export const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n)

/** Records a service and cuts its power, then records what starts on some of the states and cuts the power again. */
export const powerCuts = async ({ states, ...asked }: Asked): Promise<Checked> => {
  const first = await record({ ...asked, dir: folder(asked.dir, 'recording'), endings: ENDINGS })
  const perSecond = Math.round((states * SECOND_PART) / SECOND_CUTS)
  const results = [await check(first, 'states', states - perSecond * SECOND_CUTS, asked)]
  for (const n of upTo(SECOND_CUTS)) {
    const second = await recordAfterCut(first, n, asked)
    results.push(await check(second, `states-after-cut-${n}`, perSecond, asked))
  }
  return {
    states: results.reduce((sum, { states }) => sum + states, 0),
    services: results.reduce((sum, { services }) => sum + services, 0),
    findings: results.flatMap(({ findings }) => findings),
  }
}

type Given = Omit<Asked, 'states'>

const folder = (dir: string, name: string): string => {
  const path = join(dir, name)
  mkdirSync(path)
  return path
}

const check = (
  recording: Recording,
  name: string,
  count: number,
  { dir, ...asked }: Given,
): Promise<Checked> =>
  checkPowerCuts({ ...asked, recording, states: upTo(count), keepDir: folder(dir, name) })

/** Records two short lives on what a power cut has left: the second one starts on a log that the first has repaired. */
const recordAfterCut = async (recording: Recording, n: number, { dir, seed, loadMs, report }: Given) => {
  let second: Recording | undefined
  await remake({ recording, seed, state: n }, async (state) => {
    second = await record({
      dir: folder(dir, `recording-after-cut-${n}`),
      seed: seed + n + 1,
      endings: ['SIGKILL', 'SIGKILL'],
      loadMs: loadMs / 4,
      report,
      after: { state, recording },
    })
  })
  if (!second) throw new Error(`Expected state ${n}`)
  return second
}
