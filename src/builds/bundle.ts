import { createHash } from 'node:crypto'
import { createWriteStream, existsSync } from 'node:fs'
import { mkdir, readdir, realpath, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { clock } from '../clock.ts'
import { AppError } from '../errors.ts'
import { newId } from '../ids.ts'
import type { Blobs } from '../ports/blobs.ts'
import { buildKey, type BuildRef, MAX_ZIP_BYTES } from '../ports/runtime.ts'
import { unpack } from './zip.ts'

const HASH = /^[0-9a-f]{64}$/

export interface BuildCacheDeps {
  readonly blobs: Blobs
  /** Created when missing. `builds/<hash>` is an unpacked build; `tmp` contains incomplete ones, removed when old. */
  readonly cacheDir: string
  /** Prepares an unpacked build for its runs. `files` are the names of all its files. */
  readonly prepare: (dir: string, files: readonly string[]) => Promise<void>
}

/** Unpacked builds on the local disk, by hash. A folder gets its final name when it is complete. */
export class BuildCache {
  readonly #deps: BuildCacheDeps
  readonly #fetching = new Map<string, Promise<string>>()
  #opened: Promise<string> | undefined

  constructor(deps: BuildCacheDeps) {
    this.#deps = deps
  }

  /**
   * Resolves with the real path of the unpacked build, which is fetched when it is missing. Concurrent callers
   * share one fetch. Rejects with `not_found`, `unavailable` or, for a zip we refuse, `bad_request`.
   */
  ensure({ hash }: Pick<BuildRef, 'hash'>): Promise<string> {
    const known = this.#fetching.get(hash)
    if (known) return known
    const fetching = this.#ensure(hash).finally(() => this.#fetching.delete(hash))
    this.#fetching.set(hash, fetching)
    return fetching
  }

  async #ensure(hash: string): Promise<string> {
    if (!HASH.test(hash))
      throw new AppError(
        'bad_request',
        `hash: Expected 64 hex digits, got ${JSON.stringify(hash.slice(0, 80))}`,
      )
    const cacheDir = await (this.#opened ??= this.#open())
    const dir = join(cacheDir, 'builds', hash)
    if (existsSync(dir)) return dir
    const temporary = join(cacheDir, 'tmp', newId())
    const files = join(temporary, 'files')
    try {
      await mkdir(files, { recursive: true })
      const zipFile = join(temporary, 'build.zip')
      await this.#download(hash, zipFile)
      await this.#deps.prepare(files, await unpack(zipFile, files))
      await rename(files, dir).catch((error: unknown) => {
        if (!existsSync(dir)) throw error // otherwise another process was faster
      })
      return dir
    } finally {
      await rm(temporary, { recursive: true, force: true })
    }
  }

  async #open(): Promise<string> {
    await mkdir(join(this.#deps.cacheDir, 'builds'), { recursive: true })
    const cacheDir = await realpath(this.#deps.cacheDir)
    await clearLitter(join(cacheDir, 'tmp'))
    return cacheDir
  }

  async #download(hash: string, zipFile: string): Promise<void> {
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
    await pipeline(await this.#deps.blobs.get(buildKey(hash)), check, createWriteStream(zipFile))
    const actual = sha256.digest('hex')
    if (actual !== hash) throw new AppError('bad_request', `file: Expected SHA-256 ${hash}, got ${actual}`)
  }
}

/** Age at which incomplete builds are removed; another process may still use younger ones. */
const LITTER_MS = 3_600_000

const clearLitter = async (dir: string): Promise<void> => {
  await mkdir(dir, { recursive: true })
  for (const name of await readdir(dir)) {
    const path = join(dir, name)
    const info = await stat(path).catch(() => undefined) // another process removed it
    if (info && clock.now() - info.mtimeMs > LITTER_MS) await rm(path, { recursive: true, force: true })
  }
}
