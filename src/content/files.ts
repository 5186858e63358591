import { createHash } from 'node:crypto'
import type { Readable } from 'node:stream'
import { clock } from '../clock.ts'
import type { Cause } from '../events/event.ts'
import type { Aggregates } from '../domain/aggregates.ts'
import { AppError, isAppError } from '../errors.ts'
import type { File } from '../events/file.ts'
import { streamOf } from '../events/streams.ts'
import { newId } from '../ids.ts'
import type { Blobs } from '../ports/blobs.ts'
import type { Quota } from './fileQuota.ts'

/** Content has this long from its first byte to its fact; what is older and in no fact is nobody's (`sagas/fileSweep.ts`). */
export const MAX_STORING_MS = 6 * 3600_000

/** Where content lies. `version` is a `newId`, which tells when the content began to come; its end spreads the folders. */
export const contentKey = (env_id: string, version: string): string =>
  `files/${env_id}/${version.slice(-2)}/${version}`

export interface Writing {
  readonly env_id: string
  readonly path: string
  readonly content_type: string
  /** The run whose code writes it; null for a client. */
  readonly run_id: string | null
  readonly cause: Cause
}

/**
 * The files of environments: content in the blobs, everything else in the log. Content is durable before the fact that
 * names it (I1), and what a fact says is replaced or deleted is removed after it; a crash in between leaves an orphan.
 */
export class Files {
  readonly #aggregates: Pick<Aggregates, 'files'>
  readonly #blobs: Blobs
  readonly quota: Quota

  constructor({
    aggregates,
    blobs,
    quota,
  }: {
    aggregates: Pick<Aggregates, 'files'>
    blobs: Blobs
    quota: Quota
  }) {
    this.#aggregates = aggregates
    this.#blobs = blobs
    this.quota = quota
  }

  /** The file at a path as of now; null when there is none. */
  async at(env_id: string, path: string): Promise<File | null> {
    return this.#aggregates.files.read(streamOf.file(env_id, path), ({ file }) => file)
  }

  /** Streams content to the path; nothing of it is kept when this rejects. Over `maxBytes` is `payload_too_large`. */
  async write(writing: Writing, content: AsyncIterable<Buffer>, maxBytes: number): Promise<File> {
    const { env_id, path } = writing
    const began = clock.now()
    const digest = createHash('sha256')
    const tooLarge = () => new AppError('payload_too_large', `body: expected at most ${maxBytes} bytes`)
    const measured = async function* () {
      let bytes = 0
      for await (const chunk of content) {
        if ((bytes += chunk.length) > maxBytes) throw tooLarge()
        digest.update(chunk)
        yield chunk
      }
    }
    const { key, size } = await this.#blobs.put(contentKey(env_id, newId()), measured())
    const file = { file_id: newId(), path, key, size, etag: `"${digest.digest('hex')}"` }
    try {
      await this.quota.checkRoom(env_id, size - ((await this.at(env_id, path))?.size ?? 0))
      if (clock.now() - began > MAX_STORING_MS) throw new AppError('request_timeout', 'body: took too long')
    } catch (error) {
      await this.#discard(key)
      throw error
    }
    return this.commit(writing, file)
  }

  /** Makes content that lies in the blobs the file's own. Asked twice it is done once. */
  async commit(
    { env_id, path, content_type, run_id, cause }: Writing,
    file: Pick<File, 'file_id' | 'path' | 'key' | 'size' | 'etag'>,
  ): Promise<File> {
    const stored = { ...file, content_type, storage_backend: this.#blobs.backend }
    try {
      const { events } = await this.#aggregates.files.handle(
        streamOf.file(env_id, path),
        { type: 'StoreFile', file: stored, run_id, now: clock.iso() },
        cause,
      )
      const [fact] = events
      if (fact?.type !== 'FileStored') return (await this.at(env_id, path)) as File
      const { type: _, replaced, ...now } = fact
      if (replaced) await this.#discard(replaced.key)
      return now
    } catch (error) {
      if (isAppError(error, 'conflict')) await this.#discard(file.key) // else nobody knows whether it was stored
      throw error
    }
  }

  /** Rejects with `not_found` when the file has other content by now, or none. */
  read(file: Pick<File, 'key'>, range?: { from: number; to: number }): Promise<Readable> {
    return this.#blobs.get(file.key, range)
  }

  /** Rejects with `not_found` when another was faster. */
  async remove({ env_id, path, file_id }: File & { env_id: string }, cause: Cause): Promise<void> {
    const { events } = await this.#aggregates.files.handle(
      streamOf.file(env_id, path),
      { type: 'DeleteFile', file_id },
      cause,
    )
    for (const event of events) if (event.type === 'FileDeleted') await this.#discard(event.former.key)
  }

  /** The sweep removes what cannot be removed now. */
  async #discard(key: string): Promise<void> {
    await this.#blobs.remove(key).catch(() => {})
  }
}
