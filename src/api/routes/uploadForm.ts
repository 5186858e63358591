import { stat } from 'node:fs/promises'
import type { Context } from 'koa'
import type { koaBody as KoaBody } from 'koa-body'
import Type from 'typebox'
import { isFullDisk } from '../../disk/fullDisk.ts'
import { fullDisk } from '../http/fullDisk.ts'
import { AppError } from '../../errors.ts'
import { MAX_ZIP_BYTES } from '../../ports/runtime.ts'
import { isId } from '../../ids.ts'
import { pace } from '../http/incoming.ts'
import { unknownField } from '../http/validate.ts'
import { HASH_PATTERN } from '../schemas/patterns.ts'

/** The form of a build upload (SPEC.md, Builds). */
export const UploadForm = Type.Object({
  file: Type.String({
    format: 'binary',
    contentMediaType: 'application/zip',
    description: 'The zip, at most 100 MiB',
  }),
  hash: Type.String({ pattern: HASH_PATTERN, description: 'SHA-256 of the file in hex' }),
  build_id: Type.Optional(
    Type.String({
      format: 'uuid',
      description:
        'Optional id of your choice, unique in the project. A repeated upload with the same id is not a new build',
    }),
  ),
  live: Type.Optional(
    Type.Union([Type.Literal('true'), Type.Literal('false')], {
      description:
        '`true` uploads a live (development) build. Eval uses it, and further live builds replace it unless it is deployed',
    }),
  ),
})

const MAX_FIELDS = 20
const MAX_FIELDS_BYTES = 64 << 10

export interface Upload {
  readonly file: string
  readonly size: number
  readonly hash: string
  readonly build_id: string | undefined
  readonly live: boolean
}

/**
 * Reads the form into `dir`. koa-body is loaded at the first upload, because it is large and few nodes need it.
 * A refusal names the field.
 */
export const readUpload = async (ctx: Context, dir: string): Promise<Upload> => {
  if (!ctx.is('multipart/form-data'))
    throw new AppError('unsupported_media_type', 'body: expected multipart/form-data with `file` and `hash`')
  const { koaBody } = await import('koa-body')
  const parse = koaBody({
    multipart: true,
    json: false,
    text: false,
    urlencoded: false,
    formidable: {
      uploadDir: dir,
      maxFiles: 1,
      maxFileSize: MAX_ZIP_BYTES,
      maxFields: MAX_FIELDS,
      maxFieldsSize: MAX_FIELDS_BYTES,
      allowEmptyFiles: true,
      minFileSize: 0,
      hashAlgorithm: 'sha256',
      onPart: receivePart,
    },
    onError: (error) => {
      ctx.req.resume() // a client that is still sending could not read the refusal
      throw refusedForm(error)
    },
  })
  const { tooSlow, stop } = pace(ctx.req)
  try {
    await Promise.race([parse(ctx, () => Promise.resolve()), tooSlow])
  } finally {
    stop()
  }
  const request = ctx.request as unknown as {
    body?: Record<string, unknown>
    files?: Record<string, { filepath: string; size: number; hash?: string | null }>
  }
  for (const name of Object.keys({ ...request.body, ...request.files }))
    if (!Object.hasOwn(UploadForm.properties, name))
      throw unknownField([name], Object.keys(UploadForm.properties))
  const { file } = request.files ?? {}
  const field = (name: string): string | undefined => {
    const value = request.body?.[name]
    if (value !== undefined && typeof value !== 'string')
      throw new AppError('bad_request', `${name}: expected at most once`)
    return value
  }
  if (request.body?.['file'] !== undefined)
    throw new AppError(
      'bad_request',
      'file: expected a file, got text: the part needs a filename, such as of curl -F file=@build.zip',
    )
  if (!file || Array.isArray(file))
    throw new AppError('bad_request', 'file: is required once: the zip of the build')
  // The parser completes the form before it reports that a write has failed.
  if ((await stat(file.filepath)).size !== file.size) throw fullDisk()
  const hash = field('hash')?.toLowerCase()
  if (hash === undefined) throw new AppError('bad_request', 'hash: is required: the hex SHA-256 of the file')
  if (!/^[0-9a-f]{64}$/.test(hash))
    throw new AppError('bad_request', 'hash: expected 64 hex digits (SHA-256)')
  if (file.hash !== hash)
    throw new AppError(
      'bad_request',
      `hash: expected the SHA-256 of the file ${String(file.hash)}, got ${hash}`,
    )
  const build_id = field('build_id')
  if (build_id !== undefined && !isId(build_id))
    throw new AppError('bad_request', 'build_id: expected a UUID')
  const live = field('live')
  if (live !== undefined && live !== 'true' && live !== 'false')
    throw new AppError('bad_request', 'live: expected true or false')
  return { file: file.filepath, size: file.size, hash, build_id, live: live === 'true' }
}

type FormOptions = NonNullable<NonNullable<Parameters<typeof KoaBody>[0]>['formidable']>

/**
 * Takes a part with a file name as a file, also without a content type, which is optional (RFC 7578, 4.4): formidable takes
 * it as text. koa-body does not wait for `handle`, so what arrives until the file is open is held.
 */
const receivePart: NonNullable<FormOptions['onPart']> = (part, handle) => {
  if (part.originalFilename !== null) part.mimetype ??= 'application/octet-stream'
  const held: unknown[][] = []
  const emit = part.emit.bind(part)
  part.emit = (...event: unknown[]) => held.push(event) > 0
  const handled: unknown = handle(part)
  void Promise.resolve(handled).then(() => {
    part.emit = emit
    for (const event of held) Reflect.apply(emit, part, event)
  })
}

/** formidable's codes when a file, or all files together, exceed the limit. */
const TOO_LARGE: readonly unknown[] = [1009, 1016]

/** Mistakes in a form by formidable's codes, whose own messages name its options and states. */
const mistakes: ReadonlyMap<unknown, string> = new Map([
  [1006, `body: expected at most ${MAX_FIELDS_BYTES} bytes of fields beside the file`],
  [1007, `body: expected at most ${MAX_FIELDS} fields`],
  [1012, 'body: expected a whole form, which ends with the boundary of its Content-Type'],
  [1013, 'Content-Type: expected multipart/form-data with a boundary, as clients set it for a form'],
  [1015, 'file: expected no other file in the form; a part of another field has no filename'],
])

const refusedForm = (error: Error & { code?: unknown }): AppError => {
  if (TOO_LARGE.includes(error.code))
    return new AppError('payload_too_large', `file: expected at most ${MAX_ZIP_BYTES} bytes`, {
      cause: error,
    })
  if (isFullDisk(error)) return fullDisk(error)
  const message = mistakes.get(error.code) ?? `body: expected a readable form: ${error.message}`
  return new AppError('bad_request', message, { cause: error })
}
