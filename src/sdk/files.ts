import { CHUNK_BYTES, type FileAction } from './wire.ts'
import { activeRun, type CallSite } from './activeRun.ts'

/** Metadata of a stored file (SPEC.md, File). */
export interface FileInfo {
  readonly file_id: string
  readonly path: string
  /** Size in bytes. */
  readonly size: number
  readonly etag: string
  readonly content_type: string
  readonly storage_backend: string
  /** The run that created the file; null if a client of the API did. */
  readonly created_by_run_id: string | null
  readonly updated_by_run_id: string | null
  readonly created_at: string
  readonly updated_at: string
}

type WithContent = FileInfo & { readonly content: Uint8Array }

/** Maximum content that `files` reads or writes: all of it is in the memory of the process. */
const MAX_CONTENT = 64 << 20
/** Attempts to read a file whose content changes during the read. */
const MAX_TRIES = 3

const ask = (
  action: FileAction,
  params: Readonly<Record<string, unknown>>,
  site?: CallSite,
): Promise<unknown> => activeRun(`files.${action}`).request({ op: 'files', action, params }, site)

let last: Promise<unknown> = Promise.resolve()

/** Reads files one at a time, because concurrent reads would fill the memory of the service. */
const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
  const done = last.then(work)
  last = done.catch(() => {})
  return done
}

const tooLarge = (size: number): RangeError =>
  new RangeError(`Expected content of at most ${MAX_CONTENT} bytes, got ${size}`)

/** The error of Node would name a function of its own. */
const bytesOf = (content: string | Uint8Array): Buffer => {
  try {
    return Buffer.from(content)
  } catch {
    throw new TypeError(`Expected files.put() with content as a string or Uint8Array, got ${kindOf(content)}`)
  }
}

const kindOf = (value: unknown): string => {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'an array' : typeof value
}

/** An option with another name would have no effect. */
const checkOptions = (caller: string, options: unknown, names: readonly string[]): void => {
  if (typeof options !== 'object' || options === null || Array.isArray(options))
    throw new TypeError(`Expected ${caller}() with an object of options, got ${kindOf(options)}`)
  const unknown = Object.keys(options).find((name) => !names.includes(name))
  if (unknown !== undefined)
    throw new TypeError(`Expected ${caller}() with only the options ${names.join(', ')}, got "${unknown}"`)
}

/** The files of the run's environment. */
export const files = {
  /** Reads a file of at most 64 MiB. Rejects with code `not_found` if it does not exist. */
  get: async (path: string): Promise<WithContent> => {
    const site = activeRun('files.get').siteOf?.(files.get)
    for (let tries = 1; ; tries++) {
      try {
        return await inTurn(() => read(path, site))
      } catch (error) {
        if ((error as { code?: unknown }).code !== 'conflict' || tries === MAX_TRIES) throw error
      }
    }
  },

  /** Creates or replaces a file of at most 64 MiB. A string is stored as UTF-8. */
  put: async (
    path: string,
    content: string | Uint8Array,
    options: { contentType?: string } = {},
  ): Promise<FileInfo> => {
    checkOptions('files.put', options, ['contentType'])
    const bytes = bytesOf(content)
    if (bytes.length > MAX_CONTENT) throw tooLarge(bytes.length)
    const type =
      options.contentType ??
      (typeof content === 'string' ? 'text/plain; charset=utf-8' : 'application/octet-stream')
    return (await write(path, bytes, type)) as FileInfo
  },

  /** Lists files in the order of their paths. `limit` is 1-100, default 20. */
  list: async (
    options: { prefix?: string; limit?: number; offset?: number } = {},
  ): Promise<readonly FileInfo[]> => {
    checkOptions('files.list', options, ['prefix', 'limit', 'offset'])
    return (await ask('list', options)) as readonly FileInfo[]
  },

  delete: async (path: string): Promise<void> => {
    await ask('delete', { path })
  },
}

const read = async (path: string, site: CallSite | undefined): Promise<WithContent> => {
  const { content_base64: first, ...info } = (await ask('get', { path }, site)) as FileInfo & {
    content_base64: string
  }
  const { size, etag } = info
  if (size > MAX_CONTENT) throw tooLarge(size)
  const content = new Uint8Array(size)
  let from = Buffer.from(content.buffer).write(first, 'base64')
  while (from < size) {
    const next = (await ask('read', { path, etag, from }, site)) as { content_base64: string }
    const bytes = Buffer.from(content.buffer, from).write(next.content_base64, 'base64')
    if (bytes === 0) throw new Error(`Expected ${size} bytes of "${path}", got ${from}`)
    from += bytes
  }
  return { ...info, content }
}

const write = async (path: string, bytes: Buffer, content_type: string): Promise<unknown> => {
  if (bytes.length <= CHUNK_BYTES)
    return ask('put', { path, content_base64: bytes.toString('base64'), content_type })
  const begin = { path, content_type, expected_size: bytes.length }
  const { upload_id } = (await ask('begin', begin)) as { upload_id: string }
  try {
    for (let at = 0, part_number = 1; at < bytes.length; at += CHUNK_BYTES, part_number++) {
      const content_base64 = bytes.toString('base64', at, at + CHUNK_BYTES)
      await ask('part', { upload_id, part_number, content_base64 })
    }
    return await ask('complete', { upload_id })
  } catch (error) {
    await ask('abort', { upload_id }).catch(() => {}) // if this fails too, the upload expires
    throw error
  }
}
