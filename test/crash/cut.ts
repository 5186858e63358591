import { sep } from 'node:path'
import type { Disk } from './disk.ts'
import {
  applyName,
  applyTo,
  type Change,
  type FileChange,
  type FileNode,
  type FolderNode,
  isEntryChange,
  type Node,
} from './nodes.ts'

/** A file as a power cut left it. */
export interface FileImage {
  readonly bytes: Buffer
  readonly of: FileNode
  /** Whether the file has no change that is not durable. */
  readonly isSynced: boolean
}

/** What a power cut left: files and folders (null) by path. */
export type Image = ReadonlyMap<string, FileImage | null>

export interface Cut {
  readonly image: Image
  /** One line for each change that did not survive whole. */
  readonly dropped: () => string[]
}

/** Returns a whole number from 0 to `below` - 1. */
type Random = (below: number) => number

/** The survivors among the changes of a file: the change itself, parts of it, or none. */
type Survivors = ReadonlyMap<Change, readonly FileChange['change'][]>

const SECTORS = [512, 4096]

/** The patterns of survival, and how often each is tried in 100 cuts. */
const PATTERNS: readonly (readonly [weight: number, pattern: (random: Random, count: number) => Survival])[] =
  [
    [15, () => () => 'lost'],
    [5, () => () => 'kept'],
    [30, firstOnes],
    [35, someOf],
    [15, allButOne],
  ]

/** Decides about the change at an index. */
type Survival = (index: number) => 'kept' | 'lost' | 'torn'

/** Everything up to a moment survives, and the change of that moment is torn. */
function firstOnes(random: Random, count: number): Survival {
  const end = random(count + 1)
  return (index) => (index < end ? 'kept' : index === end ? 'torn' : 'lost')
}

/** Each change survives or is torn by chance. */
function someOf(random: Random): Survival {
  const kept = 10 + random(81)
  const torn = random(40)
  return () => (random(100) < kept ? (random(100) < torn ? 'torn' : 'kept') : 'lost')
}

function allButOne(random: Random, count: number): Survival {
  const missing = random(Math.max(count, 1))
  const isTorn = random(2) === 0
  return (index) => (index !== missing ? 'kept' : isTorn ? 'torn' : 'lost')
}

/** Cuts the power: every change that is not durable survives, is lost or is torn, as the random numbers decide. */
export const cut = (disk: Disk, random: Random): Cut => {
  const pending = [...disk.pending]
  const survival = patternOf(random)(random, pending.length)
  const survivors = new Map<Change, readonly FileChange['change'][]>()
  const sector = SECTORS[random(SECTORS.length)] ?? 512
  const fates: [change: Change, fate: ReturnType<Survival>][] = []
  for (const [index, change] of pending.entries()) {
    const fate = survival(index)
    const parts = partsOf(change, fate, { random, sector })
    if (parts) survivors.set(change, parts)
    if (fate !== 'kept') fates.push([change, fate])
  }
  const dropped = () => {
    const paths = new Map([...disk.all()].map(([path, node]) => [node, path]))
    return fates.map(([change, fate]) => `${fate} ${describe(paths, change)}`)
  }
  return { image: imageOf(disk, survivors), dropped }
}

/** The files after a cut that the given changes survive whole, and no other. */
export const imageWith = (disk: Disk, survives: (change: Change) => boolean): Image => {
  const kept = [...disk.pending].filter(survives)
  return imageOf(disk, new Map(kept.map((change) => [change, isEntryChange(change) ? [] : [change.change]])))
}

const patternOf = (random: Random) => {
  let at = random(100)
  for (const [weight, pattern] of PATTERNS) {
    if (at < weight) return pattern
    at -= weight
  }
  return someOf
}

interface Tearing {
  readonly random: Random
  readonly sector: number
}

/** Null if nothing of the change survives. A lost write may leave its size behind, with zeros. */
const partsOf = (change: Change, fate: ReturnType<Survival>, { random, sector }: Tearing) => {
  if (isEntryChange(change)) return fate === 'lost' ? null : []
  const { change: whole, of } = change
  if (fate === 'kept') return [whole]
  if ('size' in whole) return null
  const end = whole.at + whole.bytes.length
  const grown = end > of.durable.size && random(2) === 0 ? [{ at: end, bytes: Buffer.alloc(0) }] : []
  if (fate === 'lost') return grown.length > 0 ? grown : null
  return [...grown, ...sectorsOf(whole, { random, sector })]
}

/** Some of the sectors of a write: all before one of them, or any of them. */
const sectorsOf = (
  { at, bytes }: { readonly at: number; readonly bytes: Buffer },
  { random, sector }: Tearing,
) => {
  const parts: { at: number; bytes: Buffer }[] = []
  for (let from = 0; from < bytes.length;) {
    const to = Math.min(bytes.length, from + sector - ((at + from) % sector))
    parts.push({ at: at + from, bytes: bytes.subarray(from, to) })
    from = to
  }
  if (random(2) === 0) return parts.slice(0, random(parts.length + 1))
  return parts.filter(() => random(2) === 0)
}

const imageOf = (disk: Disk, chosen: Survivors): Image => {
  const image = new Map<string, FileImage | null>()
  const survivors = new Map(chosen)
  for (const change of chosen.keys())
    // D3: a rename never removes the old name alone
    if (isEntryChange(change) && change.needs?.of.pending.has(change.needs)) survivors.set(change.needs, [])
  for (const [path, root] of disk.roots) addFolder(image, path, root, survivors)
  return image
}

const addFolder = (
  image: Map<string, FileImage | null>,
  path: string,
  folder: FolderNode,
  survivors: Survivors,
) => {
  image.set(path, null)
  const names = new Map(folder.durable)
  for (const change of folder.pending) if (survivors.has(change)) applyName(names, change)
  for (const [name, node] of names) {
    const at = `${path}${sep}${name}`
    if (node.kind === 'folder') addFolder(image, at, node, survivors)
    else image.set(at, { bytes: bytesOf(node, survivors), of: node, isSynced: node.pending.size === 0 })
  }
}

const bytesOf = (file: FileNode, survivors: Survivors): Buffer => {
  const changes = [...file.pending].filter((change) => survivors.has(change))
  if (changes.length === 0) return file.durable.bytes
  const content = file.durable.copy()
  for (const of of changes) for (const change of survivors.get(of) ?? []) applyTo(content, { ...of, change })
  return content.bytes
}

const describe = (paths: ReadonlyMap<Node, string>, change: Change): string => {
  const place = paths.get(change.of) ?? 'a removed place'
  if (isEntryChange(change))
    return `${change.to === null ? 'removal' : 'addition'} of ${change.name} in ${place}`
  const { change: what } = change
  return 'size' in what
    ? `size ${what.size} of ${place}`
    : `${what.bytes.length} bytes at ${what.at} of ${place}`
}
