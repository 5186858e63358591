import { mkdirSync } from 'node:fs'
import { mkdir, rename } from 'node:fs/promises'
import { dirname } from 'node:path'
import { BoundedMap } from '../boundedMap.ts'
import { isMissing, syncFolder, syncFolderNow } from './sync.ts'

/** Creates a folder whose name is durable afterwards, also if an earlier process has created it and was killed. */
export const makeFolderNow = (path: string, mode?: number): void => {
  const first = mkdirSync(path, { recursive: true, ...(mode !== undefined && { mode }) }) ?? path
  for (let made = path; made.length >= first.length; made = dirname(made)) syncFolderNow(dirname(made))
}

/** Folders that are remembered as durable. */
const FOLDERS = 4096

/**
 * The folders whose names are durable. A folder that exists may be new: another request has just created it, or an earlier
 * process was killed before it synced the name.
 */
export class DurableFolders {
  readonly #made = new BoundedMap<string, Promise<void>>(FOLDERS)
  readonly #root: string

  /** `root` exists, and its name is durable. */
  constructor(root: string) {
    this.#root = root
  }

  /** Moves a complete, synced file or folder to its place below the root. Durable when it resolves. */
  async place(from: string, to: string): Promise<void> {
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
