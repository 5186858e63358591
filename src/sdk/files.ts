import { activeRun } from './activeRun.ts'

/** Metadata of a stored file (SPEC.md, File). */
export interface FileInfo {
  readonly file_id: string
  readonly path: string
  /** Bytes. */
  readonly size: number
  readonly etag: string
  readonly content_type: string
  readonly created_at: string
  readonly updated_at: string
}

/** Content travels in one frame, as base64. */
const MAX_CONTENT = 4 << 20

const ask = (
  action: 'get' | 'put' | 'list' | 'delete',
  params: Readonly<Record<string, unknown>>,
): Promise<unknown> => activeRun(`files.${action}`).request({ op: 'files', action, params })

/** The files of the run's environment. */
export const files = {
  /** Rejects with code `not_found`, and for files over 4 MiB. */
  get: async (path: string): Promise<FileInfo & { readonly content: Uint8Array }> => {
    const { content_base64: content, ...info } = (await ask('get', { path })) as FileInfo & {
      content_base64: string
    }
    return { ...info, content: new Uint8Array(Buffer.from(content, 'base64')) }
  },

  /** Creates or replaces; at most 4 MiB. A string is stored as UTF-8. */
  put: async (
    path: string,
    content: string | Uint8Array,
    options: { contentType?: string } = {},
  ): Promise<FileInfo> => {
    const bytes = typeof content === 'string' ? Buffer.from(content) : Buffer.from(content)
    if (bytes.length > MAX_CONTENT) {
      throw new RangeError(`Expected content of at most ${MAX_CONTENT} bytes, got ${bytes.length}`)
    }
    const type =
      options.contentType ??
      (typeof content === 'string' ? 'text/plain; charset=utf-8' : 'application/octet-stream')
    const info = await ask('put', { path, content_base64: bytes.toString('base64'), content_type: type })
    return info as FileInfo
  },

  /** By path. `limit` 1-100, default 20. */
  list: async (
    options: { prefix?: string; limit?: number; offset?: number } = {},
  ): Promise<readonly FileInfo[]> => (await ask('list', options)) as readonly FileInfo[],

  delete: async (path: string): Promise<void> => {
    await ask('delete', { path })
  },
}
