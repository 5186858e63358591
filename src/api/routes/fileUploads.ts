import { createReadStream, createWriteStream } from 'node:fs'
import { rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import Type from 'typebox'
import { AppError, isAppError } from '../../errors.ts'
import type { Part, Upload } from '../../events/upload.ts'
import { checkedContentType, checkedPath, MEDIA_TYPE_RULES, PATH_RULES } from '../../content/fileChecks.ts'
import { MAX_PART_BYTES, type Pending } from '../../content/fileUploads.ts'
import { newId } from '../../ids.ts'
import { MAX_PARTS } from '../../ports/blobs.ts'
import { incoming } from '../http/incoming.ts'
import { welcome } from '../http/welcome.ts'
import { type Ask, item, none, route } from '../route.ts'
import { FileUpload, MultipartUpload, UploadedPart, UploadUnderWay } from '../schemas.ts'
import { announcedBytes, demandWrite, presentUpload } from './files.ts'

const tag = 'Files'

type AskOne = Pick<Ask<{ upload_id: string }>, 'params' | 'credential' | 'deps'>

const present = ({ upload_id, path, part_size, parts_expected, expires_at }: Upload) => ({
  upload_id,
  path,
  part_size,
  parts_expected,
  expires_at,
})

const presentPart = ({ part_number, size, etag }: Part) => ({ part_number, size, etag })

const uploadOf = ({ params, credential, deps }: AskOne): Promise<Pending> =>
  deps.uploads.get(credential.env_id, params.upload_id)

/** To make the file or to change it: which of them it is shows when it is complete. */
const toWrite = {
  type: 'file',
  action: 'create',
  or: 'update',
  path: async (params: { upload_id: string }, { credential, deps }: Pick<Ask, 'credential' | 'deps'>) => {
    const found = await uploadOf({ params, credential, deps }).catch((error: unknown) => {
      if (isAppError(error, 'not_found')) return null
      throw error
    })
    return found ? [found.upload.path] : []
  },
}

const causeOf = ({ credential: { env_id, id }, request_id }: Pick<Ask, 'credential' | 'request_id'>) => ({
  env_id,
  correlation_id: request_id,
  actor: id,
})

const partNumberIn = (text: string): number => {
  const number = /^\d{1,6}$/.test(text) ? Number(text) : 0
  if (number >= 1 && number <= MAX_PARTS) return number
  throw new AppError('bad_request', `part_number: expected 1 to ${MAX_PARTS}, got ${text.slice(0, 20)}`)
}

const tooLarge = () => new AppError('payload_too_large', `body: expected at most ${MAX_PART_BYTES} bytes`)

async function* atMost(content: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let bytes = 0
  for await (const chunk of content) {
    if ((bytes += chunk.length) > MAX_PART_BYTES) throw tooLarge()
    yield chunk
  }
}

const putPart = async (ask: Ask<{ upload_id: string; part_number: string }>): Promise<Part> => {
  const { ctx, deps, params } = ask
  const pending = await uploadOf(ask)
  const part_number = partNumberIn(params.part_number)
  const announced = announcedBytes(ctx)
  if (announced !== null && announced > MAX_PART_BYTES) throw tooLarge()
  welcome(ctx)
  if (announced !== null) {
    const part = { part_number, size: announced, content: incoming(ctx.req) }
    return deps.uploads.putPart(pending, part, causeOf(ask))
  }
  // How large a part is must be known before it is passed on.
  const spooled = join(deps.scratchDir, newId())
  try {
    await pipeline(atMost(incoming(ctx.req)), createWriteStream(spooled))
    const { size } = await stat(spooled)
    const part = { part_number, size, content: createReadStream(spooled) }
    return await deps.uploads.putPart(pending, part, causeOf(ask))
  } finally {
    await rm(spooled, { force: true })
  }
}

export const uploadRoutes = [
  route({
    method: 'POST',
    path: '/v1/files/uploads',
    summary: 'Begin an upload in parts',
    description:
      'Parts of `part_size` are sent one by one, in any order, at once if you like, and then completed to the file. ' +
      'With `expected_size` it is checked at once whether the plan has room for it, and on completion whether all came.',
    tag,
    needs: {
      type: 'file',
      action: 'create',
      or: 'update',
      path: (_: unknown, { body }: Pick<Ask, 'body'>) => [(body as { path: string }).path],
    },
    body: Type.Object({
      path: Type.String({
        description: '1 to 1024 bytes, segments between single slashes',
        documented: PATH_RULES,
      }),
      expected_size: Type.Optional(
        Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: 'Bytes of the whole' }),
      ),
      content_type: Type.Optional(
        Type.String({
          description: 'Default application/octet-stream',
          documented: MEDIA_TYPE_RULES,
        }),
      ),
    }),
    example: { path: 'backups/monday.tar', expected_size: 5368709120, content_type: 'application/x-tar' },
    errors: ['quota_exceeded'],
    reply: { kind: 'item', status: 201, schema: MultipartUpload },
    handle: async (ask) => {
      const {
        body,
        credential,
        deps,
        caller: { newId },
      } = ask
      const path = checkedPath(body.path)
      const content_type = checkedContentType(body.content_type)
      await demandWrite(ask, path)
      const { env_id } = credential
      const writing = { env_id, path, content_type, run_id: null, cause: causeOf(ask) }
      return item(present(await deps.uploads.begin(writing, body.expected_size, newId('upload'))), 201)
    },
  }),

  route({
    method: 'GET',
    path: '/v1/files/uploads/:upload_id',
    summary: 'Get an upload in parts, with the parts that came',
    description: 'To go on with an upload that was interrupted: send the parts that are missing.',
    tag,
    needs: toWrite,
    reply: { kind: 'item', schema: UploadUnderWay },
    handle: async (ask) => {
      const { status, upload, parts } = await uploadOf(ask)
      if (status !== 'pending') throw new AppError('not_found', `No upload ${upload.upload_id}`)
      const ordered = [...parts.values()].sort((a, b) => a.part_number - b.part_number)
      return item({ ...present(upload), parts: ordered.map(presentPart) })
    },
  }),

  route({
    method: 'PUT',
    path: '/v1/files/uploads/:upload_id/:part_number',
    summary: 'Upload a part',
    description:
      'At most 256 MiB; every part but the last at least 5 MiB. The same number again replaces the part.',
    tag,
    needs: toWrite,
    rawBody: 'application/octet-stream',
    holdsBody: true,
    errors: ['quota_exceeded', 'request_timeout'],
    reply: { kind: 'item', schema: UploadedPart },
    handle: async (ask) => {
      const part = await putPart(ask)
      return item(presentPart(part), 200, { ETag: part.etag })
    },
  }),

  route({
    method: 'POST',
    path: '/v1/files/uploads/:upload_id/complete',
    summary: 'Complete an upload in parts',
    description:
      'The parts, numbered from 1 on without a gap, become the file. A file that is there gets the new content and ' +
      'keeps its `file_id`.',
    tag,
    needs: toWrite,
    errors: ['quota_exceeded'],
    reply: { kind: 'item', schema: FileUpload },
    handle: async (ask) => {
      const pending = await uploadOf(ask)
      if (pending.status === 'pending') await demandWrite(ask, pending.upload.path)
      const file = await ask.deps.uploads.complete(pending, causeOf(ask))
      return item(presentUpload(file), 200, { ETag: file.etag })
    },
  }),

  route({
    method: 'DELETE',
    path: '/v1/files/uploads/:upload_id',
    summary: 'Cancel an upload in parts, and remove what came of it',
    tag,
    needs: toWrite,
    reply: { kind: 'none' },
    handle: async (ask) => {
      await ask.deps.uploads.abort(await uploadOf(ask), 'asked', causeOf(ask))
      return none
    },
  }),
]
