import { rmdirSync } from 'node:fs'
import { mkdir, rename } from 'node:fs/promises'
import { dirname, sep } from 'node:path'
import { BoundedMap } from '../boundedMap.ts'
import { makeFolder } from './makeFolder.ts'
import { isMissing, syncFolder, syncFolderNow } from './sync.ts'

/** Creates a folder whose name is durable afterwards, also if an earlier process has created it and was killed. */
export const makeFolderNow = (path: string, mode?: number): void => {
  const first = makeFolder(path, mode) ?? path
  for (let made = path; made.length >= first.length; made = dirname(made)) {
    syncFolderNow(dirname(made))
    if (made === dirname(made)) return // the root is in no folder
  }
}

/** Folders that are remembered as durable. */
const FOLDERS = 4096

/**
 * The names below a folder, and the changes of them that are visible but not durable yet.
 * N1: a change is durable when its promise resolves.
 * N2: a reader that looks first and then waits until the name is settled has seen nothing that a power cut can undo.
 * N3: a folder that exists may be new: another request has just created it, or an earlier process was killed before it
 * synced the name.
 * N4: a folder is removed with its last name, unless a name is being placed below it.
 */
export class DurableNames {
  readonly #made = new BoundedMap<string, Promise<void>>(FOLDERS)
  readonly #root: string
  /** The ends of the latest changes in progress, by path. */
  readonly #unsettled = new Map<string, Promise<unknown>>()
  /** The names that are being placed. */
  readonly #placing = new Set<{ readonly to: string }>()

  /** `root` exists, and its name is durable. */
  constructor(root: string) {
    this.#root = root
  }

  /** Moves a complete, synced file or folder to its place below the root. */
  place(from: string, to: string): Promise<void> {
    const placed = { to }
    this.#placing.add(placed) // N4
    return this.#change(to, () => this.#place(from, to).finally(() => this.#placing.delete(placed)))
  }

  /** Removes a name by `work`. It becomes durable also if an earlier process has removed it. */
  remove(path: string, work: () => Promise<unknown>): Promise<void> {
    return this.#change(path, async () => {
      await work()
      await this.#syncNearest(dirname(path))
      this.#removeEmpty(dirname(path))
    })
  }

  /** Resolves when every change of a name that is visible now is durable; without a path, of all names. */
  async settled(path?: string): Promise<void> {
    await (path === undefined ? Promise.all(this.#unsettled.values()) : this.#unsettled.get(path))
  }

  #change(path: string, work: () => Promise<void>): Promise<void> {
    const change = work()
    const end = Promise.allSettled([this.#unsettled.get(path), change]).then(() => {
      if (this.#unsettled.get(path) === end) this.#unsettled.delete(path)
    })
    this.#unsettled.set(path, end)
    return change
  }

  /** Makes the removal of a name durable, also if its folder was removed with it (N4). */
  async #syncNearest(folder: string): Promise<void> {
    try {
      await syncFolder(folder)
    } catch (error) {
      if (!isMissing(error)) throw error
      if (folder !== this.#root) await this.#syncNearest(dirname(folder))
    }
  }

  /** Removes a folder without names, and those above it. It does not wait, so that no placing begins meanwhile (N4). */
  #removeEmpty(folder: string): void {
    for (let empty = folder; empty !== this.#root; empty = dirname(empty)) {
      const names = `${empty}${sep}`
      if ([...this.#placing].some(({ to }) => to.startsWith(names))) return
      try {
        rmdirSync(empty)
      } catch (error) {
        if (!isMissing(error)) return // it has other names
      }
      this.#made.delete(empty)
    }
  }

  async #place(from: string, to: string): Promise<void> {
    const folder = dirname(to)
    await this.#make(folder)
    await rename(from, to).catch(async (error: unknown) => {
      if (!isMissing(error)) throw error
      for (let gone = folder; gone !== this.#root; gone = dirname(gone)) this.#made.delete(gone)
      await this.#make(folder) // it was removed since it was remembered
      await rename(from, to)
    })
    await syncFolder(folder)
  }

  /** Creates a folder and its parents. Their names are durable when it resolves. */
  #make(path: string): Promise<void> {
    if (path === this.#root) return Promise.resolve()
    const known = this.#made.get(path)
    if (known) return known
    const making = this.#makeInParent(path)
    this.#made.set(path, making)
    making.catch(() => this.#made.delete(path))
    return making
  }

  async #makeInParent(path: string): Promise<void> {
    await this.#make(dirname(path))
    await mkdir(path, { recursive: true })
    await syncFolder(dirname(path))
  }
}
