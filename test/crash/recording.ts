import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Disk } from './disk.ts'
import { Ledger, type Write } from './ledger.ts'
import type { Step } from './operations.ts'
import { TraceReader } from './traceReader.ts'

/** One life of a service on a data directory. */
interface Life {
  readonly steps: readonly Step[]
  /** The steps that the death of the process interrupted before they happened. */
  readonly undone: ReadonlySet<number>
}

/** The lives of a service on one data directory, and the record of its clients. */
export interface Recording {
  /** The folder with the traces. */
  readonly dir: string
  /** The folders in which changes of files are recorded. */
  readonly roots: readonly string[]
  readonly dataDir: string
  /** Where the service keeps unpacked builds. */
  readonly cacheDir: string
  readonly lives: readonly Life[]
  readonly ledger: Ledger
  /** What an earlier power cut has left: copies of the roots, and the requests that were answered before it. */
  readonly before: { readonly copies: readonly string[]; readonly answered: readonly string[] } | null
}

/** What a folder with a recording contains beside the traces. */
interface Saved {
  readonly roots: readonly string[]
  readonly dataDir: string
  readonly cacheDir: string
  readonly before: Recording['before']
  readonly undone: readonly (readonly number[])[]
  readonly writes: Write[]
}

const fileIn = (dir: string): string => join(dir, 'recording.json')

export const traceIn = (dir: string, life: number): string => join(dir, `trace-${life}`)

export const saveRecording = ({ dir, ledger, lives, ...rest }: Recording): void => {
  const undone = lives.map((life) => [...life.undone])
  writeFileSync(fileIn(dir), JSON.stringify({ ...rest, undone, writes: ledger.writes } satisfies Saved))
}

/** Reads a recording again, so that a seed makes the same states. */
export const readRecording = async (dir: string): Promise<Recording> => {
  const { undone, writes, ...rest } = JSON.parse(readFileSync(fileIn(dir), 'utf8')) as Saved
  const reader = new TraceReader(rest.roots)
  const lives: Life[] = []
  for (const [life, ids] of undone.entries())
    lives.push({ steps: await reader.read(traceIn(dir, life)), undone: new Set(ids) })
  return { ...rest, dir, lives, ledger: new Ledger(writes) }
}

interface Moment {
  /** The number of the step, from 0. */
  readonly step: number
  readonly taken: Step
  /** The requests whose replies a client may have received. */
  readonly answered: ReadonlySet<string>
}

/** The disk before the first step. */
export const diskOf = ({ roots, before }: Pick<Recording, 'roots' | 'before'>): Disk => {
  const disk = new Disk(roots)
  for (const [index, root] of roots.entries()) {
    const copy = before?.copies[index]
    if (copy !== undefined) disk.load(root, copy)
  }
  return disk
}

/** Replays a recording on a disk. Calls `at` after each step. */
export const replay = async (
  { lives, before }: Recording,
  disk: Disk,
  at: (moment: Moment) => Promise<void> | void,
): Promise<void> => {
  const answered = new Set(before?.answered)
  let step = 0
  for (const { steps, undone } of lives) {
    for (const each of steps) {
      disk.take(each)
      if (each.type === 'begin' && each.operation.kind === 'reply')
        for (const id of each.operation.request_ids) answered.add(id)
      await at({ step: step++, taken: each, answered })
    }
    disk.settle(undone)
  }
}
