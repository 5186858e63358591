import { existsSync } from 'node:fs'
import { TaskChild, type TaskChildStart } from '../sandbox/taskChild.ts'
import type { TemporaryFolder } from './buildCache.ts'

/** A started child with the folder that it can read, which is empty. */
export interface ReadyChild {
  readonly child: TaskChild
  readonly folder: TemporaryFolder
}

/** The next child starts after this time, so that it does not slow down the rest of the upload before it. */
const PAUSE_MS = 50

interface Deps extends Omit<TaskChildStart, 'dir'> {
  readonly newFolder: () => Promise<TemporaryFolder>
  /** Whether another child may run: the waiting one counts as an inspection. */
  readonly hasPlace: () => boolean
}

/**
 * Keeps one started child for the next inspection: a start takes longer than to load a usual build. People who
 * write functions upload again and again. N1: a child has no owner until it is taken, and then one. N2: a child that
 * is not taken for `idleMs` is ended, and the next one starts after an inspection.
 */
export class NextChild {
  readonly #deps: Deps
  #ready: ReadyChild | undefined
  #starting: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  #closed = false

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** 1 if a child waits. */
  get children(): number {
    return this.#ready?.child.usable ? 1 : 0
  }

  /** Returns the waiting child, which belongs to the caller from now on, with its folder. */
  take(): ReadyChild | undefined {
    const ready = this.#ready
    if (!ready) return undefined
    this.#ready = undefined
    clearTimeout(this.#timer)
    if (ready.child.usable && existsSync(ready.folder.files)) return ready // something may have removed the cache
    ready.child.kill()
    void ready.folder.remove()
    return undefined
  }

  /** Starts a child soon, unless one waits. A failure is reported by the inspection that then starts its own. */
  prepare(): void {
    if (this.#closed || this.#ready || this.#starting) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      if (!this.#deps.hasPlace()) return // the inspection that has it prepares the next child
      this.#starting = this.#start()
        .catch(() => {})
        .finally(() => (this.#starting = undefined))
    }, PAUSE_MS).unref()
  }

  /** Ends the waiting child. Resolves when it has ended. */
  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    await this.#starting
    await this.#discard()
  }

  async #start(): Promise<void> {
    const { newFolder, code, options } = this.#deps
    const folder = await newFolder()
    try {
      this.#ready = { folder, child: new TaskChild({ dir: folder.files, code, options }) }
    } catch (error) {
      await folder.remove()
      throw error
    }
    this.#timer = setTimeout(() => void this.#discard(), options.idleMs).unref() // N2
  }

  async #discard(): Promise<void> {
    const ready = this.#ready
    this.#ready = undefined
    if (!ready) return
    ready.child.kill()
    await ready.child.ended
    await ready.folder.remove()
  }
}
