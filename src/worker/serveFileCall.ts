import { buffer } from 'node:stream/consumers'
import type { Cause } from '../events/event.ts'
import { AppError } from '../errors.ts'
import type { File } from '../events/file.ts'
import { checkedContentType, checkedPath } from '../content/fileChecks.ts'
import type { Files, Writing } from '../content/files.ts'
import type { CommandDeps } from '../commands/deps.ts'
import type { HostCall } from '../ports/runtime.ts'
import { CHUNK_BYTES } from '../sdk/wire.ts'

/** Bytes of content in a reply: fewer, because replies that a child does not read stay in memory here. */
const MAX_GIVEN_BYTES = 1 << 20

type FileCall = Extract<HostCall, { op: 'files' }>

/** What a function asks of the files of its environment. Content that is larger than a frame comes chunk by chunk. */
export const serveFileCall = async (
  { files, uploads, views }: Pick<CommandDeps, 'files' | 'uploads' | 'views'>,
  { env_id, run_id, cause }: { env_id: string; run_id: string; cause: Cause },
  { action, params }: FileCall,
): Promise<unknown> => {
  const writing = (): Writing => ({
    env_id,
    path: checkedPath(params['path']),
    content_type: checkedContentType(params['content_type']),
    run_id,
    cause,
  })
  const fileAt = async (): Promise<File> => {
    const path = checkedPath(params['path'])
    const file = await files.at(env_id, path)
    if (!file) throw new AppError('not_found', `No file "${path}"`)
    return file
  }
  /** An upload that this run began. */
  const upload = async () => {
    const pending = await uploads.get(env_id, textOf(params, 'upload_id'))
    if (pending.upload.by_run_id !== run_id) throw new AppError('not_found', 'No such upload')
    return pending
  }

  switch (action) {
    case 'get': {
      const file = await fileAt()
      return { ...present(file), content_base64: await contentOf(files, file, 0) }
    }
    case 'read': {
      const file = await fileAt()
      if (file.etag !== params['etag']) throw new AppError('conflict', `File "${file.path}" has changed`)
      return { content_base64: await contentOf(files, file, countOf(params, 'from', 0, 0, file.size)) }
    }
    case 'put': {
      const bytes = bytesOf(params)
      await files.quota.checkRoom(env_id, 0)
      return present(await files.write(writing(), once(bytes), files.quota.maxFileBytes(env_id)))
    }
    case 'begin': {
      const size = countOf(params, 'expected_size', 0, 0, Number.MAX_SAFE_INTEGER)
      return { upload_id: (await uploads.begin(writing(), size)).upload_id }
    }
    case 'part': {
      const bytes = bytesOf(params)
      const part_number = countOf(params, 'part_number', 1, 1, 10_000)
      await uploads.putPart(await upload(), { part_number, size: bytes.length, content: once(bytes) }, cause)
      return null
    }
    case 'complete':
      return present(await uploads.complete(await upload(), cause))
    case 'abort':
      await uploads.abort(await upload(), 'asked', cause)
      return null
    case 'list': {
      await views.settled('files')
      const prefix = params['prefix'] === undefined ? undefined : textOf(params, 'prefix')
      const { items } = await views.files.find({
        equal: { env_id },
        sort: 'path',
        ...(prefix !== undefined && { prefix }),
        limit: countOf(params, 'limit', 20, 1, 100),
        offset: countOf(params, 'offset', 0, 0, 1e9),
      })
      return items.map(({ env_id: _, ...file }) => present(file))
    }
    case 'delete':
      await files.remove({ ...(await fileAt()), env_id }, cause)
      return null
    default:
      return action satisfies never
  }
}

const present = ({ key: _, ...file }: File) => file

async function* once(bytes: Buffer): AsyncGenerator<Buffer> {
  yield await Promise.resolve(bytes)
}

const contentOf = async (files: Files, file: File, from: number): Promise<string> => {
  const to = Math.min(from + MAX_GIVEN_BYTES, file.size) - 1
  if (to < from) return ''
  return (await buffer(await files.read(file, { from, to }))).toString('base64')
}

type Params = FileCall['params']

const bytesOf = (params: Params): Buffer => {
  const bytes = Buffer.from(textOf(params, 'content_base64'), 'base64')
  if (bytes.length > CHUNK_BYTES)
    throw new AppError('bad_request', `content: expected at most ${CHUNK_BYTES} bytes at a time`)
  return bytes
}

const textOf = (params: Params, name: string): string => {
  const value = params[name]
  if (typeof value === 'string') return value
  throw new AppError('bad_request', `${name}: expected text`)
}

const countOf = (params: Params, name: string, fallback: number, min: number, max: number): number => {
  const value = params[name] ?? fallback
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= min && value <= max) return value
  throw new AppError('bad_request', `${name}: expected a whole number from ${min} to ${max}`)
}
