import { mkdir, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { isMissing } from '../../disk/sync.ts'
import { isAppError } from '../../errors.ts'
import { newId } from '../../ids.ts'
import type { Blobs, HeldBlobs } from '../../ports/blobs.ts'
import { pathOf } from './blobFiles.ts'

type Keeps = (key: string) => boolean
type Reader = Pick<Blobs, 'get' | 'list'>

/**
 * Keeps removed blobs in a folder as long as they are held. Every hold that begins meanwhile shares the folder, and
 * the last release removes it.
 */
export class Holds {
  readonly #scratch: string
  readonly #read: (root: string) => Reader
  readonly #holds = new Set<Keeps>()
  #folder: string

  /** `read` reads the blobs below a folder. */
  constructor(scratch: string, read: (root: string) => Reader) {
    this.#scratch = scratch
    this.#read = read
    this.#folder = join(scratch, newId())
  }

  /** Moves a blob that is being removed, if it is held. Resolves with whether it was moved. */
  async take(key: string, path: string): Promise<boolean> {
    if (![...this.#holds].some((keeps) => keeps(key))) return false
    const kept = pathOf({ root: this.#folder }, key)
    try {
      await mkdir(dirname(kept), { recursive: true })
      await rename(path, kept)
      return true
    } catch {
      return false // it is removed instead: the holder misses it and reports it
    }
  }

  begin(keeps: Keeps, blobs: Reader): HeldBlobs {
    const own: Keeps = (key) => keeps(key) // a hold of its own, also for an equal function
    this.#holds.add(own)
    const kept = this.#read(this.#folder)
    const folder = this.#folder
    return {
      /** A blob may be moved between two looks, and an equal one may be stored again. */
      get: (key, range) =>
        unlessMissing(
          () => blobs.get(key, range),
          () =>
            unlessMissing(
              () => kept.get(key, range),
              () => blobs.get(key, range),
            ),
        ),
      async *list() {
        yield* blobs.list('')
        yield* kept.list('') // afterwards: a blob that is moved meanwhile is listed at least once
      },
      release: async () => {
        if (!this.#holds.delete(own) || this.#holds.size > 0) return
        this.#folder = join(this.#scratch, newId())
        await rm(folder, { recursive: true, force: true })
      },
    }
  }
}

const unlessMissing = async <T>(look: () => Promise<T>, lookAgain: () => Promise<T>): Promise<T> => {
  try {
    return await look()
  } catch (error) {
    if (isAppError(error, 'not_found') || isMissing(error)) return lookAgain()
    throw error
  }
}
