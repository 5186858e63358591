import { Content } from './content.ts'

/** A change of a file that no sync has made durable yet. */
export interface FileChange {
  readonly of: FileNode
  readonly change: { readonly at: number; readonly bytes: Buffer } | { readonly size: number }
  /** Whether a sync that begins now covers it. */
  hasEnded: boolean
}

/** A change of the names in a folder that no sync of the folder has made durable yet. */
export interface EntryChange {
  readonly of: FolderNode
  readonly name: string
  /** Null: the name is removed. */
  readonly to: Node | null
  readonly before: Node | null
  /** The other half of a rename. A name is never removed without the addition of the new one. */
  needs: EntryChange | null
  hasEnded: boolean
}

export type Change = FileChange | EntryChange
export type Node = FileNode | FolderNode

/** A file with its bytes in memory and on the disk. */
export class FileNode {
  readonly kind = 'file'
  readonly volatile: Content
  readonly durable: Content
  readonly pending = new Set<FileChange>()

  constructor(bytes: Uint8Array = new Uint8Array(0)) {
    this.volatile = new Content(bytes)
    this.durable = new Content(bytes)
  }

  /** Rebuilds the content in memory without a change that was undone. */
  restart(): void {
    this.volatile.resize(0)
    this.volatile.write(0, this.durable.bytes)
    for (const change of this.pending) applyTo(this.volatile, change)
  }
}

/** A folder with its names in memory and on the disk. */
export class FolderNode {
  readonly kind = 'folder'
  readonly volatile = new Map<string, Node>()
  readonly durable = new Map<string, Node>()
  readonly pending = new Set<EntryChange>()

  /** Adds a node that has always been there. */
  plant(name: string, node: Node): void {
    this.volatile.set(name, node)
    this.durable.set(name, node)
  }
}

export const isEntryChange = (change: Change): change is EntryChange => 'name' in change

/** Applies a change of a file to some content of it. */
export const applyTo = (content: Content, { change }: FileChange): void => {
  if ('size' in change) content.resize(change.size)
  else content.write(change.at, change.bytes)
}

/** Applies a change of names to some version of the names. */
export const applyName = (names: Map<string, Node>, { name, to }: EntryChange): void => {
  if (to === null) names.delete(name)
  else names.set(name, to)
}

/** Notes a change in memory. */
export const begin = (change: Change): void => {
  if (isEntryChange(change)) {
    applyName(change.of.volatile, change)
    change.of.pending.add(change)
  } else {
    applyTo(change.of.volatile, change)
    change.of.pending.add(change)
  }
}

/** Removes a change that is durable or was undone. False if it was removed before. */
export const forget = (change: Change): boolean =>
  isEntryChange(change) ? change.of.pending.delete(change) : change.of.pending.delete(change)
