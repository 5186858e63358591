import type { File } from './api.ts'
import type { Content, Files, FileWritten, PutOptions, RequestOptions } from './client.ts'
import { ServiceError } from './errors.ts'
import type { Lists } from './lists.ts'
import { randomKey } from './randomKey.ts'
import { dataOf, isUncertain, type Send } from './transport.ts'

/** Content above this size is sent in parts: a lost connection then costs one part, and there is progress to show. */
const SINGLE_BYTES = 16 << 20

/** Attempts to read a file that gets other content each time. */
const TRIES = 8

/** The files of the environment, by path. */
export const openFiles = (send: Send, { list, all }: Lists<'GET /v1/files'>): Files => {
  const stat = async (path: string, options: RequestOptions = {}): Promise<File> => {
    // Files are listed by path, so an exact match is the first of those with this prefix.
    const { data } = await list({ ...options, prefix: path, limit: 1 })
    const [file] = data
    if (file?.path === path) return file
    throw new ServiceError('not_found', `No file ${path}`, { status: 404 })
  }
  const download = async ({ file_id }: File, options: RequestOptions): Promise<Response | null> => {
    try {
      return await send('GET /v1/files/{file_id}/download', { path: { file_id }, ...options })
    } catch (error) {
      if (error instanceof ServiceError && error.code === 'not_found') return null // it may be stored again
      throw error
    }
  }
  const open: Files['open'] = async (path, options = {}) => {
    let file = await stat(path, options)
    for (let tries = 1; tries <= TRIES; tries++) {
      const response = await download(file, options)
      const content = response?.body ?? new Blob([]).stream()
      if (response && isOf(response, file)) return { ...file, content }
      const before = file
      file = await stat(path, options)
      // A proxy may have changed the ETag of the reply.
      if (response && (isOf(response, file) || file.etag === before.etag)) return { ...file, content }
      await content.cancel()
    }
    throw new ServiceError('unavailable', `The content of ${path} is being replaced`, { status: 503 })
  }
  return {
    list,
    all,
    stat,
    open,
    get: async (path, options) => {
      const { content, ...file } = await open(path, options)
      const bytes = await new Response(content).arrayBuffer().catch((cause: unknown) => {
        throw new ServiceError('unreachable', `The connection ended within the content of ${path}`, { cause })
      })
      return { ...file, content: new Uint8Array(bytes) }
    },
    put: async (path, content, options = {}) => {
      const blob = blobOf(content, options)
      return blob.size <= SINGLE_BYTES
        ? putWhole(send, path, blob, options)
        : putParts(send, path, blob, options)
    },
    delete: async (path, options = {}) => {
      const { file_id } = await stat(path, options)
      await dataOf(await send('DELETE /v1/files/{file_id}', { path: { file_id }, ...options }))
    },
  }
}

/** Whether a reply has the content of the file. Proxies weaken an ETag, or drop it. */
const isOf = ({ headers }: Response, { etag }: File): boolean => {
  const given = headers.get('etag')
  return given === null || given.replace(/^W\//, '') === etag
}

const blobOf = (content: Content, { contentType }: PutOptions): Blob => {
  if (content instanceof Blob)
    return contentType === undefined ? content : content.slice(0, content.size, contentType)
  const type =
    contentType ?? (typeof content === 'string' ? 'text/plain; charset=utf-8' : 'application/octet-stream')
  return new Blob([typeof content === 'string' ? content : new Uint8Array(content)], { type })
}

const typeOf = ({ type }: Blob): string => (type === '' ? 'application/octet-stream' : type)

const putWhole = async (
  send: Send,
  path: string,
  body: Blob,
  { signal, onProgress }: PutOptions,
): Promise<FileWritten> => {
  const input = { path: { path }, body, type: typeOf(body), ...(signal && { signal }) }
  const file = (await dataOf(await send('PUT /v1/files/upload/{path}', input))) as FileWritten
  onProgress?.(body.size)
  return file
}

const putParts = async (
  send: Send,
  path: string,
  content: Blob,
  { signal, onProgress }: PutOptions,
): Promise<FileWritten> => {
  const withSignal = signal && { signal }
  const begun = await send('POST /v1/files/uploads', {
    body: { path, expected_size: content.size, content_type: typeOf(content) },
    idempotencyKey: randomKey(),
    ...withSignal,
  })
  const { upload_id, part_size } = (await dataOf(begun)) as {
    readonly upload_id: string
    readonly part_size: number
  }
  let isCompleting = false
  try {
    for (let at = 0, part_number = 1; at < content.size; at += part_size, part_number++) {
      const body = content.slice(at, at + part_size)
      const input = {
        path: { upload_id, part_number },
        body,
        type: 'application/octet-stream',
        ...withSignal,
      }
      await dataOf(await send('PUT /v1/files/uploads/{upload_id}/{part_number}', input))
      onProgress?.(at + body.size)
    }
    const input = { path: { upload_id }, idempotencyKey: randomKey(), ...withSignal }
    isCompleting = true
    return (await dataOf(await send('POST /v1/files/uploads/{upload_id}/complete', input))) as FileWritten
  } catch (error) {
    // An upload that is perhaps being completed is left: it expires if it is not.
    if (isCompleting && error instanceof ServiceError && isUncertain(error)) throw error
    // If this fails too, the upload expires.
    await send('DELETE /v1/files/uploads/{upload_id}', { path: { upload_id } }).catch(() => {})
    throw error
  }
}
