import { createHash } from 'node:crypto'
import { basename, join, sep } from 'node:path'
import type { Recorded } from '../../src/events/event.ts'
import type { FileImage, Image } from './cut.ts'
import { below, type Disk } from './disk.ts'
import type { Ledger } from './ledger.ts'
import type { FileNode, Node } from './nodes.ts'
import type { Operation } from './operations.ts'

/** Facts that name content before it is stored. */
const EARLY = new Set<string>(['UploadBegun', 'PartUploaded', 'UploadJoined', 'UploadAborted'])

/** The ids and hashes after which blobs are named. A build has both: others may have the same zip. */
const TOKENS = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{64}/g

const digestOf = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')

/** The ids of the data keys whose destruction is among the facts. */
const destroyedKeys = (facts: readonly Recorded[]): Set<string> => {
  const keys = new Map<string, string[]>()
  const destroyed = new Set<string>()
  for (const { event, stream } of facts) {
    if (event.type === 'DataKeyCreated') keys.set(stream, [...(keys.get(stream) ?? []), event.key_id])
    if (event.type === 'DataKeysDestroyed') for (const key of keys.get(stream) ?? []) destroyed.add(key)
  }
  return destroyed
}

interface State {
  readonly disk: Disk
  readonly image: Image
  /** The facts that survived. */
  readonly facts: readonly Recorded[]
}

/**
 * The rules about files outside of the databases.
 * B1: a blob that a surviving fact names is there, whole, unless it was removed since. A key whose destruction survived
 * may be there or not: it may be wrapped again meanwhile, and is then removed once more.
 * B2: a key whose erasure was acknowledged is not there.
 * B3: an unpacked build that is there is whole, or has a mark with which the next start removes it.
 */
export class BlobRules {
  readonly #objects: string
  readonly #builds: string
  readonly #marks: string
  /** The contents that each blob has ever had, by path. Keys are wrapped again. */
  readonly #versions = new Map<string, Set<string>>()

  constructor({ dataDir, cacheDir }: { readonly dataDir: string; readonly cacheDir: string }) {
    this.#objects = join(dataDir, 'blobs', 'objects') + sep
    this.#builds = join(cacheDir, 'builds')
    this.#marks = join(cacheDir, 'unsynced')
  }

  /** Notes the blobs that a power cut had left before the first life. */
  noteAll(disk: Disk): void {
    for (const [path, node] of disk.all()) if (path.startsWith(this.#objects)) this.#noteAt(path, node)
  }

  /** Notes a blob that has got its place. */
  note(disk: Disk, operation: Operation): void {
    if (operation.kind !== 'rename' || !operation.to.startsWith(this.#objects)) return
    this.#noteAt(operation.to, disk.at(operation.to))
  }

  #noteAt(path: string, node: Node | null): void {
    if (node?.kind !== 'file') return
    const versions = this.#versions.get(path) ?? new Set()
    this.#versions.set(path, versions.add(digestOf(node.volatile.bytes)))
  }

  problemOf(state: State, ledger: Ledger): string | null {
    return this.#lostBlob(state) ?? this.#keptKey(state, ledger) ?? this.#damagedBuild(state)
  }

  #lostBlob({ disk, image, facts }: State): string | null {
    const destroyed = destroyedKeys(facts)
    for (const [path, versions] of this.#versions) {
      const current = disk.at(path)
      const found = image.get(path) ?? null
      if (destroyed.has(basename(path))) continue
      if (current?.kind !== 'file' || (found && isSame(found, current))) continue
      if (found && versions.has(digestOf(found.bytes))) continue
      const tokens = basename(path).match(TOKENS) ?? []
      const fact = facts.find(
        ({ event }) =>
          !EARLY.has(event.type) && tokens.every((token) => JSON.stringify(event).includes(token)),
      )
      if (fact)
        return `${found ? 'damaged' : 'lost'} blob ${path}, which ${fact.event.type} in ${fact.stream} names`
    }
    return null
  }

  #keptKey({ image, facts }: State, ledger: Ledger): string | null {
    for (const { register: env_id, acknowledged } of ledger.acknowledged('erasure')) {
      const erased = facts.findLastIndex(
        ({ metadata }) => metadata.correlation_id === acknowledged.request_id,
      )
      for (const { event, metadata } of facts.slice(0, erased + 1)) {
        if (event.type !== 'DataKeyCreated' || metadata.env_id !== env_id) continue
        const path = [...image.keys()].find(
          (at) => at.startsWith(this.#objects) && at.endsWith(`${sep}${event.key_id}`),
        )
        if (path !== undefined) return `the erased key ${path} is there again`
      }
    }
    return null
  }

  #damagedBuild({ disk, image }: State): string | null {
    const builds = disk.at(this.#builds)
    for (const [name, build] of builds?.kind === 'folder' ? builds.volatile : []) {
      const dir = join(this.#builds, name)
      if (build.kind !== 'folder' || image.get(dir) === undefined) continue
      if ([...image.keys()].some((path) => path.startsWith(join(this.#marks, name)))) continue
      for (const [path, node] of below(dir, build)) {
        const found = image.get(path)
        if (found === undefined) return `${path} is missing in an unpacked build`
        if (node.kind === 'file' && found && !isSame(found, node) && !found.bytes.equals(node.volatile.bytes))
          return `${path} is damaged in an unpacked build`
      }
    }
    return null
  }
}

const isSame = (found: FileImage, current: FileNode): boolean => found.of === current && found.isSynced
