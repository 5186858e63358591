import { existsSync, lstatSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { markDamaged } from '../../src/adapters/embedded/disposableFile.ts'
import { childCacheOf } from '../../src/process/childCache.ts'
import { randomOf } from '../support/randomOf.ts'
import type { Disk } from './disk.ts'
import { startService } from './killedService.ts'
import { Ledger } from './ledger.ts'
import { load } from './load.ts'
import { materialize } from './materialize.ts'
import { type Change, isEntryChange } from './nodes.ts'
import { diskOf, type Recording, saveRecording, traceIn } from './recording.ts'
import type { State } from './stateCheck.ts'
import { NODE_START, strace } from './strace.ts'
import { TraceReader } from './traceReader.ts'
import { allWriters, erasures, prepare, rotations } from './writers.ts'

/** This life discards the index and the read models, as after damage. */
const DAMAGED_LIFE = 2

interface Asked {
  /** An existing folder, which receives the traces and the data directory. */
  readonly dir: string
  readonly seed: number
  /** How each life of the service ends. The next one starts on what it left. */
  readonly endings: readonly NodeJS.Signals[]
  /** The time under load of each life. */
  readonly loadMs: number
  readonly report: (line: string) => void
  /** The service starts on what a power cut has left of another recording. */
  readonly after?: { readonly state: State; readonly recording: Recording }
}

/** Runs a service under load with strace, once for each ending. */
export const record = async ({ dir, seed, endings, loadMs, report, after }: Asked): Promise<Recording> => {
  const base = join(dir, 'disk')
  const dataDir = join(base, 'data')
  await mkdir(base)
  const isRoot = process.getuid?.() === 0
  const cacheDir = isRoot ? childCacheOf(dataDir) : join(dataDir, 'cache')
  rmSync(cacheDir, { recursive: true, force: true }) // of an earlier recording in this place
  const roots = isRoot ? [base, cacheDir] : [base]
  const random = randomOf(seed)
  const name = after ? `s${seed}-` : 'l'
  const before = after ? layOutBefore(after, { dir, dataDir, cacheDir }) : null
  const ledger = new Ledger(after?.state.ledger.writes)
  const disk = diskOf({ roots, before })
  const reader = new TraceReader(roots)
  const lives: Recording['lives'][number][] = []
  for (const [life, ending] of endings.entries()) {
    if (life === DAMAGED_LIFE)
      for (const file of ['index.db', 'read-models.db']) markDamaged(join(dataDir, file))
    const service = await startService(dataDir, strace(traceIn(dir, life), NODE_START))
    await prepare(service.target, ledger)
    const over = new AbortController()
    const writers = [
      ...allWriters(ledger, random, `${name}${life}`),
      erasures(ledger, `erased-${name}${life}`),
      ...(life % 2 === 1 ? [rotations(ledger)] : []),
    ]
    const loading = load(service.target, writers, over.signal)
    await delay(loadMs)
    over.abort()
    await service.end(ending)
    await loading
    const steps = await reader.read(traceIn(dir, life))
    for (const step of steps) disk.take(step)
    const undone = new Set(
      [...disk.interrupted]
        .filter(([, changes]) => !changes.every((change) => hasHappened(disk, change)))
        .map(([id]) => id),
    )
    disk.settle(undone)
    lives.push({ steps, undone })
    report(`recorded life ${life + 1} of ${endings.length}: ${steps.length} steps`)
    const missed = differencesOf(disk)
    if (missed.length > 0)
      throw new Error(
        `Expected a complete trace, but files differ from it: ${missed.slice(0, 10).join('; ')}`,
      )
  }
  const recording = { dir, roots, dataDir, cacheDir, lives, ledger, before }
  saveRecording(recording)
  return recording
}

/** Writes what a power cut has left to the place of a new recording, and a copy of it beside it. */
const layOutBefore = (
  {
    state: { image, answered },
    recording: { dataDir: from, cacheDir: cacheFrom },
  }: NonNullable<Asked['after']>,
  { dir, dataDir, cacheDir }: { readonly dir: string; readonly dataDir: string; readonly cacheDir: string },
): Recording['before'] => {
  const copies = [join(dir, 'before')]
  for (const to of [dataDir, join(dir, 'before', 'data')]) {
    mkdirSync(dirname(to), { recursive: true })
    materialize(image, from, to)
  }
  if (!cacheDir.startsWith(dataDir)) {
    copies.push(join(dir, 'before-cache'))
    for (const to of [cacheDir, join(dir, 'before-cache')])
      materialize(image, cacheFrom, to, { isOpen: true })
  }
  return { copies, answered: [...answered] }
}

/** Whether an interrupted change is in the files. */
const hasHappened = (disk: Disk, change: Change): boolean => {
  const path = [...disk.all(), ...disk.roots].find(([, node]) => node === change.of)?.[0]
  if (path === undefined) return true // nobody can see it any more
  if (isEntryChange(change)) return existsSync(join(path, change.name)) === (change.to !== null)
  const bytes = readFileSync(path)
  const { change: what } = change
  return 'size' in what
    ? bytes.length === what.size
    : bytes.subarray(what.at, what.at + what.bytes.length).equals(what.bytes)
}

/** Files of SQLite that it maps into memory, and rebuilds from the WAL. */
export const isMapped = (path: string): boolean => path.endsWith('-shm')

/** The files whose content is not what the trace says: a change came by a way that strace does not see. */
const differencesOf = (disk: Disk): string[] => {
  const differences: string[] = []
  for (const [path, node] of disk.all()) {
    if (!existsSync(path)) differences.push(`${path} is missing`)
    else if (node.kind === 'folder' || isMapped(path) || !lstatSync(path).isFile()) continue
    else if (!readFileSync(path).equals(node.volatile.bytes))
      differences.push(`${path} (${readFileSync(path).length} bytes, not ${node.volatile.size})`)
  }
  return differences
}
