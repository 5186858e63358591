import { lstatSync, readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join, sep } from 'node:path'
import {
  applyName,
  applyTo,
  begin,
  type Change,
  type EntryChange,
  FileNode,
  FolderNode,
  forget,
  isEntryChange,
  type Node,
} from './nodes.ts'
import type { Operation, Step } from './operations.ts'

/**
 * A model of files under a power cut.
 * D1: bytes and sizes are durable when a sync of their file has returned that began after their write had returned.
 * D2: names are durable when a sync of their folder has returned. A sync of a file promises nothing about its name.
 * D3: a rename within a folder is atomic. Between folders, the old name may remain beside the new one.
 * D4: everything else may survive or not, in any combination.
 */
export class Disk {
  readonly #roots = new Map<string, FolderNode>()
  readonly #handles = new Map<number, Node>()
  readonly #pending = new Set<Change>()
  readonly #inProgress = new Map<number, readonly Change[]>()
  readonly #syncing = new Map<number, readonly Change[]>()

  constructor(roots: readonly string[]) {
    for (const root of roots) this.#roots.set(root, new FolderNode())
  }

  /** Adds files that were durable before the first step, from a copy of a root. */
  load(root: string, copy: string): void {
    const folder = this.#roots.get(root)
    if (folder) loadFolder(folder, copy)
  }

  get roots(): ReadonlyMap<string, FolderNode> {
    return this.#roots
  }

  /** The changes that a power cut may undo, in the order in which they began. */
  get pending(): ReadonlySet<Change> {
    return this.#pending
  }

  take(step: Step): void {
    if (step.type === 'end') this.#end(step.id)
    else if (step.operation.kind === 'sync')
      this.#syncing.set(step.id, this.#coveredBy(step.operation.handle))
    else this.#inProgress.set(step.id, this.#begin(step.operation))
  }

  /** The node of a path in memory; null if there is none. */
  at(path: string): Node | null {
    const root = this.#roots.get(path)
    if (root) return root
    const parent = dirname(path) === path ? null : this.at(dirname(path))
    return (parent?.kind === 'folder' && parent.volatile.get(basename(path))) || null
  }

  /** Yields each node in memory below the roots with its path. */
  *all(): Generator<readonly [path: string, node: Node]> {
    for (const [path, root] of this.#roots) yield* below(path, root)
  }

  /** The changes during which their process died, by step. */
  get interrupted(): ReadonlyMap<number, readonly Change[]> {
    return new Map([...this.#inProgress].filter(([, changes]) => changes.length > 0))
  }

  /** Ends the life of a process. The changes of the steps in `undone` were interrupted before they happened. */
  settle(undone: ReadonlySet<number>): void {
    for (const [step, changes] of this.interrupted)
      for (const change of changes) {
        change.hasEnded = true
        if (undone.has(step)) this.#undo(change)
      }
    this.#inProgress.clear()
    this.#syncing.clear()
    this.#handles.clear()
  }

  #undo(change: Change): void {
    this.#pending.delete(change)
    forget(change)
    if (isEntryChange(change)) applyName(change.of.volatile, { ...change, to: change.before })
    else change.of.restart()
  }

  #begin(operation: Operation): Change[] {
    switch (operation.kind) {
      case 'open': {
        const { handle, path, truncates } = operation
        const known = this.at(path) ?? this.#beingRemoved(path)
        if (known) {
          this.#handles.set(handle, known)
          return truncates && known.kind === 'file' ? [this.#changeFile(known, { size: 0 })] : []
        }
        const file = new FileNode()
        this.#handles.set(handle, file)
        return [this.#changeName(path, file)]
      }
      case 'write': {
        const file = this.#file(operation.handle)
        const at = operation.at === 'end' ? file.volatile.size : operation.at
        return [this.#changeFile(file, { at, bytes: operation.bytes })]
      }
      case 'copy': {
        const { from, to, length } = operation
        const bytes = Buffer.from(this.#file(from.handle).volatile.bytes.subarray(from.at, from.at + length))
        return [this.#changeFile(this.#file(to.handle), { at: to.at, bytes })]
      }
      case 'resize':
        return [this.#changeFile(this.#file(operation.handle), { size: operation.size })]
      case 'mkdir':
        return [this.#changeName(operation.path, new FolderNode())]
      case 'remove':
        return [this.#changeName(operation.path, null)]
      case 'link':
        return [this.#changeName(operation.to, this.#existing(operation.from))]
      case 'rename':
        return this.#rename(operation.from, operation.to)
      case 'sync':
      case 'reply':
        return []
    }
  }

  #end(id: number): void {
    for (const change of this.#inProgress.get(id) ?? []) change.hasEnded = true
    for (const change of this.#syncing.get(id) ?? []) this.#makeDurable(change)
    this.#inProgress.delete(id)
    this.#syncing.delete(id)
  }

  #coveredBy(handle: number): Change[] {
    const node = this.#handles.get(handle)
    return node ? [...node.pending].filter(({ hasEnded }) => hasEnded) : []
  }

  #makeDurable(change: Change): void {
    if (!forget(change)) return // a concurrent sync was faster
    this.#pending.delete(change)
    if (!isEntryChange(change)) return applyTo(change.of.durable, change)
    applyName(change.of.durable, change)
    if (change.needs) this.#makeDurable(change.needs)
  }

  #rename(from: string, to: string): Change[] {
    const node = this.#existing(from)
    if (from === to) return []
    const added = this.#changeName(to, node)
    const removed = this.#changeName(from, null)
    removed.needs = added
    if (removed.of === added.of) added.needs = removed
    return [added, removed]
  }

  #changeFile(
    of: FileNode,
    change: { readonly at: number; readonly bytes: Buffer } | { readonly size: number },
  ) {
    return this.#add({ of, change, hasEnded: false })
  }

  #changeName(path: string, to: Node | null): EntryChange {
    const of = this.#existing(dirname(path))
    if (of.kind !== 'folder') throw new Error(`Expected a folder at ${dirname(path)}`)
    const name = basename(path)
    return this.#add({ of, name, to, before: of.volatile.get(name) ?? null, needs: null, hasEnded: false })
  }

  #add<Added extends Change>(change: Added): Added {
    begin(change)
    this.#pending.add(change)
    return change
  }

  /** The node whose name a call removes that has not returned: an open in the same moment may still find it. */
  #beingRemoved(path: string): Node | null {
    const folder = this.at(dirname(path))
    const removed = [...this.#inProgress.values()]
      .flat()
      .find(
        (change) =>
          isEntryChange(change) && change.of === folder && change.name === basename(path) && !change.to,
      )
    return removed && isEntryChange(removed) ? removed.before : null
  }

  #existing(path: string): Node {
    const node = this.at(path)
    if (!node) throw new Error(`Expected ${path} on the recorded disk`)
    return node
  }

  #file(handle: number): FileNode {
    const node = this.#handles.get(handle)
    if (node?.kind !== 'file') throw new Error(`Expected an open file for handle ${handle}`)
    return node
  }
}

/** Yields each node in memory below a folder with its path. */
export function* below(path: string, folder: FolderNode): Generator<readonly [path: string, node: Node]> {
  for (const [name, node] of folder.volatile) {
    const at = `${path}${sep}${name}`
    yield [at, node]
    if (node.kind === 'folder') yield* below(at, node)
  }
}

const loadFolder = (folder: FolderNode, copy: string): void => {
  for (const name of readdirSync(copy)) {
    const path = join(copy, name)
    const isFolder = lstatSync(path).isDirectory()
    const node = isFolder ? new FolderNode() : new FileNode(readFileSync(path))
    if (node.kind === 'folder') loadFolder(node, path)
    folder.plant(name, node)
  }
}
