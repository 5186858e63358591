import { createHash } from 'node:crypto'
import { existsSync, renameSync } from 'node:fs'
import { lstat, mkdir, readdir, realpath, rename, rm, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Transform } from 'node:stream'
import { clock } from '../clock.ts'
import { syncFolder, syncTree } from '../disk/sync.ts'
import { writeContent } from '../disk/writeContent.ts'
import { AppError, isAppError } from '../errors.ts'
import { newId } from '../ids.ts'
import type { Blobs } from '../ports/blobs.ts'
import { buildKey, type BuildRef, MAX_ZIP_BYTES, oldBuildKey } from '../ports/runtime.ts'
import { CacheShares } from './cacheShares.ts'
import { unpack } from './zip.ts'

/** The folder of the marks in the cache. */
const UNSYNCED = 'unsynced'

const HASH = /^[0-9a-f]{64}$/

export interface BuildCacheDeps {
  readonly blobs: Pick<Blobs, 'get'>
  /** Created when missing; it belongs to one process. `builds/<hash>` is an unpacked build; `tmp` is emptied at the start. */
  readonly cacheDir: string
  /** Bytes of unpacked builds on the disk. Builds with children stay, also beyond it. */
  readonly maxBytes: number
  /** The organization of an environment: organizations share the disk. */
  readonly ownerOf: (env_id: string) => string
  /** Whether a child of the build lives or is about to start. */
  readonly isUsed: (hash: string) => boolean
  /** Prepares an unpacked build for its runs. `files` are the names of all its files. */
  readonly prepare: (dir: string, files: readonly string[], signal?: AbortSignal) => Promise<void>
}

/** An unpacked build that was not accepted yet. */
export interface Candidate {
  readonly dir: string
  /** The names of all its files. */
  readonly files: readonly string[]
}

/** A build that is being unpacked. */
interface Fetch {
  /** The key of its zip. */
  readonly zip: string
  readonly dir: Promise<string>
}

/** A folder in `tmp`. */
export interface TemporaryFolder {
  readonly path: string
  /** The folder in it for the files of a build. */
  readonly files: string
  /** Never rejects: what is left is removed at the next start. */
  remove(): Promise<void>
}

/**
 * Unpacked builds on the local disk, by hash.
 * C1: a folder gets its final name when it is complete and accepted. Until its files are durable, a mark in `unsynced` names it,
 * and the next start removes it. C2: everything else is in `tmp` and removed when its work ends, or at the next start. C3: builds beyond `maxBytes` are removed and unpacked again when needed.
 */
export class BuildCache {
  readonly #deps: BuildCacheDeps
  readonly #shares: CacheShares
  readonly #fetching = new Map<string, Fetch>()
  #opened: Promise<string> | undefined
  #counted: Promise<void> = Promise.resolve()

  constructor(deps: BuildCacheDeps) {
    this.#deps = deps
    this.#shares = new CacheShares(deps.maxBytes)
  }

  /** Removes what an earlier process left (C2). A failure is reported by the first use. */
  open(): void {
    this.#open().catch(() => {})
  }

  /** Whether the build is unpacked, so that `ensure` needs no time. */
  async has(hash: string): Promise<boolean> {
    return existsSync(this.#dirOf(await this.#open(), hash))
  }

  /**
   * Resolves with the real path of the unpacked build, which is fetched when it is missing. Concurrent callers
   * share one fetch; those of other zips with equal bytes wait for it. Rejects with `unavailable`, also while its zip is
   * missing or damaged, because that was accepted before; with `bad_request` for a zip we refuse.
   */
  async ensure(build: BuildRef): Promise<string> {
    const { hash } = build
    const zip = buildKey(build)
    let known = this.#fetching.get(hash)
    // That another zip is missing says nothing about this one.
    for (; known && known.zip !== zip; known = this.#fetching.get(hash)) await known.dir.catch(() => {})
    if (known) return known.dir
    const dir = this.#ensure(build).finally(() => this.#fetching.delete(hash))
    this.#fetching.set(hash, { zip, dir })
    return dir
  }

  /**
   * Unpacks an uploaded zip for `inspect`, and keeps it for runs if the result is accepted. Otherwise, and after any
   * failure, everything that was unpacked is removed when this resolves, with the folder.
   */
  async admit<Result extends { readonly ok: boolean }>(
    build: BuildRef,
    zipFile: string,
    inspect: (candidate: Candidate) => Promise<Result>,
    { signal, folder }: { signal?: AbortSignal; folder?: TemporaryFolder | undefined } = {},
  ): Promise<Result> {
    const admit = async (temporary: TemporaryFolder): Promise<Result> => {
      const dir = this.#dirOf(await this.#open(), build.hash)
      const candidate = await this.#unpack(zipFile, temporary, signal)
      const result = await inspect(candidate)
      if (result.ok) await this.#keep(candidate.dir, dir, build)
      return result
    }
    return this.#inTemporary(admit, folder)
  }

  /** Creates an empty folder for the files of a build. */
  async newFolder(): Promise<TemporaryFolder> {
    const cacheDir = await this.#open()
    await makeFolders(cacheDir)
    const path = join(cacheDir, 'tmp', newId())
    const folder = {
      path,
      files: join(path, 'files'),
      remove: () => rm(path, { recursive: true, force: true }).catch(() => {}),
    }
    await mkdir(folder.files, { recursive: true })
    return folder
  }

  /** Removes an unpacked build that no child uses. */
  async forget(hash: string): Promise<void> {
    const cacheDir = await this.#open()
    if (this.#fetching.has(hash) || this.#deps.isUsed(hash)) return
    this.#shares.remove(hash)
    await this.#remove(cacheDir, hash)
  }

  /** Removes the unpacked builds that are not needed. Resolves with their number, and with that of builds that children use. */
  async forgetUnneeded(
    isNeeded: (build: { readonly hash: string; readonly usedAt: number }) => Promise<boolean>,
  ): Promise<{ removed: number; left: number }> {
    await this.#open()
    await this.#counted
    let [removed, left] = [0, 0]
    const builds = [...this.#shares.uses()]
    for (const build of builds) {
      if (await isNeeded(build)) continue
      await this.forget(build.hash)
      if (this.#shares.has(build.hash)) left++
      else removed++
    }
    return { removed, left }
  }

  async #ensure(build: BuildRef): Promise<string> {
    const dir = this.#dirOf(await this.#open(), build.hash)
    if (existsSync(dir)) {
      this.#use(dir, build)
      return dir
    }
    await this.#inTemporary(async (temporary) => {
      const zipFile = join(temporary.path, 'build.zip')
      await this.#download(build, zipFile).catch((error: unknown) => {
        throw lostZip(build, error)
      })
      const { dir: unpacked } = await this.#unpack(zipFile, temporary)
      await this.#keep(unpacked, dir, build)
    })
    return dir
  }

  #dirOf(cacheDir: string, hash: string): string {
    if (HASH.test(hash)) return join(cacheDir, 'builds', hash)
    throw new AppError(
      'bad_request',
      `hash: Expected 64 hex digits, got ${JSON.stringify(hash.slice(0, 80))}`,
    )
  }

  async #inTemporary<T>(
    work: (temporary: TemporaryFolder) => Promise<T>,
    folder?: TemporaryFolder,
  ): Promise<T> {
    const temporary = folder ?? (await this.newFolder())
    try {
      return await work(temporary)
    } finally {
      await temporary.remove() // C2
    }
  }

  async #unpack(zipFile: string, { files: dir }: TemporaryFolder, signal?: AbortSignal): Promise<Candidate> {
    const files = await unpack(zipFile, dir)
    signal?.throwIfAborted()
    await this.#deps.prepare(dir, files, signal)
    return { dir, files }
  }

  /** Gives a folder its final name (C1). Its files become durable afterwards, because the caller waits. */
  async #keep(unpacked: string, dir: string, build: BuildRef): Promise<void> {
    const [bytes, mark] = await Promise.all([diskBytesOf(unpacked), this.#mark(build.hash)])
    await rename(unpacked, dir).catch((error: unknown) => {
      if (!existsSync(dir)) throw error // otherwise the same bytes were faster
    })
    syncTree(dir)
      .then(() => rm(mark, { force: true }))
      .catch(() => {}) // the folder was removed meanwhile, or the next start removes it
    this.#shares.add(build.hash, {
      bytes,
      owner: this.#deps.ownerOf(build.env_id),
      usedAt: clock.now(),
    })
    await this.#trim(build.hash)
  }

  /** Creates the mark of a folder whose files are not durable. Resolves with its path when the mark is durable. */
  async #mark(hash: string): Promise<string> {
    const marks = join(await this.#open(), UNSYNCED)
    const mark = join(marks, `${hash}.${newId()}`) // of this folder: another one of the build may follow
    await writeFile(mark, '')
    await syncFolder(marks)
    return mark
  }

  #use(dir: string, { env_id, hash }: BuildRef): void {
    const now = clock.now()
    this.#shares.use(hash, this.#deps.ownerOf(env_id), now)
    utimes(dir, now / 1000, now / 1000).catch(() => {}) // the order of use after a restart
  }

  /** Removes builds beyond the limit (C3), but not the one that was just unpacked. */
  async #trim(newest: string): Promise<void> {
    await this.#counted
    const cacheDir = await this.#open()
    const isUsed = (hash: string) => hash === newest || this.#fetching.has(hash) || this.#deps.isUsed(hash)
    for (const hash of this.#shares.surplus(isUsed)) await this.#remove(cacheDir, hash)
  }

  /**
   * The folder loses its name in one step, so that no child starts on half of it. A power cut must not return the name to what
   * is left of its files.
   */
  async #remove(cacheDir: string, hash: string): Promise<void> {
    const gone = join(cacheDir, 'tmp', newId())
    try {
      renameSync(this.#dirOf(cacheDir, hash), gone)
    } catch {
      return // it is not unpacked
    }
    await syncFolder(join(cacheDir, 'builds'))
    await rm(gone, { recursive: true, force: true })
  }

  #open(): Promise<string> {
    this.#opened ??= this.#prepare().catch((error: unknown) => {
      this.#opened = undefined
      throw error
    })
    return this.#opened
  }

  async #prepare(): Promise<string> {
    await mkdir(join(this.#deps.cacheDir, 'builds'), { recursive: true })
    const cacheDir = await realpath(this.#deps.cacheDir)
    await syncFolder(join(cacheDir, 'builds')) // else a name that an earlier process removed may return to what is left
    await rm(join(cacheDir, 'tmp'), { recursive: true, force: true }) // C2
    await mkdir(join(cacheDir, 'tmp'))
    await this.#removeUnsynced(cacheDir)
    this.#counted = this.#count(cacheDir).catch(() => {})
    return cacheDir
  }

  /** Removes the folders whose files an earlier process did not make durable (C1). */
  async #removeUnsynced(cacheDir: string): Promise<void> {
    const marks = join(cacheDir, UNSYNCED)
    await makeFolders(cacheDir)
    await syncFolder(cacheDir) // an earlier process may have made them without a sync
    const names = await readdir(marks)
    for (const name of names) {
      const [hash = ''] = name.split('.')
      if (HASH.test(hash)) await this.#remove(cacheDir, hash)
    }
    for (const name of names) await rm(join(marks, name), { force: true })
  }

  /** Counts the builds that an earlier process unpacked. */
  async #count(cacheDir: string): Promise<void> {
    for (const hash of await readdir(join(cacheDir, 'builds')))
      await this.#countOne(join(cacheDir, 'builds', hash), hash).catch(() => {}) // it was removed meanwhile, or is no build
  }

  async #countOne(dir: string, hash: string): Promise<void> {
    const [bytes, { mtimeMs }] = [await diskBytesOf(dir), await lstat(dir)]
    if (!this.#shares.has(hash)) this.#shares.add(hash, { bytes, owner: '', usedAt: mtimeMs })
  }

  async #download(build: BuildRef, zipFile: string): Promise<void> {
    const sha256 = createHash('sha256')
    let bytes = 0
    const check = new Transform({
      transform: (chunk: Buffer, _encoding, done) => {
        bytes += chunk.length
        sha256.update(chunk)
        done(
          bytes > MAX_ZIP_BYTES
            ? new AppError('bad_request', `file: Expected at most ${MAX_ZIP_BYTES} bytes, got more`)
            : null,
          chunk,
        )
      },
    })
    await writeContent(zipFile, await this.#zipOf(build), check)
    const actual = sha256.digest('hex')
    if (actual !== build.hash)
      throw new AppError('bad_request', `file: Expected SHA-256 ${build.hash}, got ${actual}`)
  }

  async #zipOf(build: BuildRef) {
    try {
      return await this.#deps.blobs.get(buildKey(build))
    } catch (error) {
      if (!isAppError(error, 'not_found')) throw error
      return this.#deps.blobs.get(oldBuildKey(build.hash))
    }
  }
}

/** Makes the folders of a cache again that something has removed, such as a clean-up of temporary files. */
const makeFolders = async (cacheDir: string): Promise<void> => {
  for (const name of ['builds', UNSYNCED])
    if (await mkdir(join(cacheDir, name), { recursive: true })) await syncFolder(cacheDir) // a mark is durable only with its folder
}

/** The error of a build whose zip the blobs do not return as it was stored: they may return it later. */
const lostZip = (build: BuildRef, error: unknown): unknown => {
  if (!isAppError(error) || (error.code !== 'not_found' && error.code !== 'bad_request')) return error
  const state = error.code === 'not_found' ? 'missing' : `damaged (${error.message})`
  const text = `The zip of build ${build.build_id} is ${state}: restore ${buildKey(build)} in the blobs, or deploy another build and delete this one`
  return new AppError('unavailable', text, { cause: error })
}

/** Bytes of a directory tree on the disk. */
const diskBytesOf = async (dir: string): Promise<number> => {
  let bytes = 0
  for (const entry of await readdir(dir, { recursive: true, withFileTypes: true })) {
    const { blocks, size } = await lstat(join(entry.parentPath, entry.name))
    bytes += Math.max(blocks * 512, size)
  }
  return bytes
}
