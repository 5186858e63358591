import { createHash } from 'node:crypto'
import { isUtf8 } from 'node:buffer'
import { etagOf } from '../content/etag.ts'
import { checkedContentType, checkedPath } from '../content/fileChecks.ts'
import { AppError } from '../errors.ts'
import { newId } from '../ids.ts'
import type { HostCall } from '../sdk/wire.ts'
import type { FileInfo } from '../sdk/files.ts'
import type { Files } from './types.ts'
import { bytesOf, countOf, idOf, prefixOf } from '../worker/fileParams.ts'

type FileCall = Extract<HostCall, { op: 'files' }>

interface Stored {
  readonly info: FileInfo
  readonly bytes: Buffer
}

interface Upload {
  readonly path: string
  readonly content_type: string
  readonly run_id: string
  readonly parts: Map<number, Buffer>
}

const TEXT_TYPE = 'text/plain; charset=utf-8'

/** Bytes in one reply, so that a function reads larger content in several, as it does in the service. */
const MAX_GIVEN_BYTES = 1 << 20

/** The files of an environment, in memory. */
export class MemoryFiles {
  readonly #now: () => string
  readonly #files = new Map<string, Stored>()
  readonly #uploads = new Map<string, Upload>()

  constructor(files: Files, now: () => string) {
    this.#now = now
    for (const [path, content] of Object.entries(files)) {
      const isText = typeof content === 'string'
      if (!isText && !(content instanceof Uint8Array))
        throw new TypeError(`files["${path}"]: expected a string or a Uint8Array, got ${typeof content}`)
      const type = isText ? TEXT_TYPE : undefined
      this.#store({ path, bytes: Buffer.from(content), content_type: type, run_id: null })
    }
  }

  /** Every file: text if it is UTF-8, otherwise bytes. */
  get contents(): Readonly<Record<string, string | Uint8Array>> {
    return Object.fromEntries(
      this.#sorted().map(({ info, bytes }) => [
        info.path,
        isUtf8(bytes) ? bytes.toString('utf8') : new Uint8Array(bytes),
      ]),
    )
  }

  /** Serves a file operation of a run as the service does. */
  serve({ action, params }: FileCall, run_id: string): unknown {
    const { path, content_type } = params
    switch (action) {
      case 'get': {
        const { info, bytes } = this.#at(path)
        return { ...info, content_base64: chunkOf(bytes, 0) }
      }
      case 'read': {
        const { info, bytes } = this.#at(path)
        if (info.etag !== params['etag']) throw new AppError('conflict', `File "${info.path}" has changed`)
        return { content_base64: chunkOf(bytes, countOf(params, 'from', 0, 0, bytes.length)) }
      }
      case 'put':
        return this.#store({ path, content_type, bytes: bytesOf(params), run_id })
      case 'begin': {
        const upload_id = newId()
        const upload = { path: checkedPath(path), content_type: checkedContentType(content_type) }
        this.#uploads.set(upload_id, { ...upload, run_id, parts: new Map() })
        return { upload_id }
      }
      case 'part':
        this.#upload(idOf(params, 'upload_id')).parts.set(
          countOf(params, 'part_number', 1, 1, 10_000),
          bytesOf(params),
        )
        return null
      case 'complete': {
        const upload_id = idOf(params, 'upload_id')
        const { parts, ...upload } = this.#upload(upload_id)
        this.#uploads.delete(upload_id)
        const inOrder = [...parts].sort(([a], [b]) => a - b).map(([, bytes]) => bytes)
        return this.#store({ ...upload, bytes: Buffer.concat(inOrder) })
      }
      case 'abort':
        this.#uploads.delete(idOf(params, 'upload_id'))
        return null
      case 'list': {
        const prefix = params['prefix'] === undefined ? '' : prefixOf(params)
        const limit = countOf(params, 'limit', 20, 1, 100)
        const offset = countOf(params, 'offset', 0, 0, 1e9)
        return this.#sorted()
          .map(({ info }) => info)
          .filter((info) => info.path.startsWith(prefix))
          .slice(offset, offset + limit)
      }
      case 'delete':
        this.#files.delete(this.#at(path).info.path)
        return null
      default:
        return action satisfies never
    }
  }

  #sorted(): Stored[] {
    return [...this.#files.values()].sort((a, b) =>
      Buffer.compare(Buffer.from(a.info.path), Buffer.from(b.info.path)),
    )
  }

  #at(given: unknown): Stored {
    const path = checkedPath(given)
    const found = this.#files.get(path)
    if (!found) throw new AppError('not_found', `No file "${path}"`)
    return found
  }

  #upload(upload_id: string): Upload {
    const found = this.#uploads.get(upload_id)
    if (!found) throw new AppError('not_found', `No upload ${upload_id}`)
    return found
  }

  #store(file: { path: unknown; content_type: unknown; bytes: Buffer; run_id: string | null }): FileInfo {
    const { bytes, run_id } = file
    const path = checkedPath(file.path)
    const former = this.#files.get(path)?.info
    const now = this.#now()
    const info: FileInfo = {
      file_id: former?.file_id ?? newId(),
      path,
      size: bytes.length,
      etag: etagOf(createHash('sha256').update(bytes)),
      content_type: checkedContentType(file.content_type),
      storage_backend: 'disk',
      created_by_run_id: former ? former.created_by_run_id : run_id,
      updated_by_run_id: run_id,
      created_at: former?.created_at ?? now,
      updated_at: now,
    }
    this.#files.set(path, { info, bytes })
    return info
  }
}

const chunkOf = (bytes: Buffer, from: number): string =>
  bytes.subarray(from, from + MAX_GIVEN_BYTES).toString('base64')
