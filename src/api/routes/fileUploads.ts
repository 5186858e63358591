import { join } from 'node:path'
import Type from 'typebox'
import { abortUpload } from '../../commands/files/abortUpload.ts'
import { demandWrite } from '../../commands/files/demandWrite.ts'
import { beginUpload } from '../../commands/files/beginUpload.ts'
import { completeUpload } from '../../commands/files/completeUpload.ts'
import { checkPart, putPart, putSpooledPart } from '../../commands/files/putPart.ts'
import { type KnownUpload, noUpload, pendingUpload, uploadFor } from '../../commands/files/uploadFor.ts'
import { checkedContentType, checkedPath, MEDIA_TYPE_RULES, PATH_RULES } from '../../content/fileChecks.ts'
import { isAppError } from '../../errors.ts'
import type { Part, Upload } from '../../events/upload.ts'
import { newId } from '../../ids.ts'
import { incoming } from '../http/incoming.ts'
import { sendContinue } from '../http/expectContinue.ts'
import { type Ask, item, none, route } from '../route.ts'
import { FileUpload, MultipartUpload, UploadedPart, UploadUnderWay } from '../schemas.ts'
import { announcedBytes, demandPlain, presentUpload } from './files.ts'

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

const uploadOf = ({ params: { upload_id }, credential, deps }: AskOne): Promise<KnownUpload> =>
  uploadFor(deps, credential.env_id, { upload_id })

/** Whether the file is created or updated is only known when the upload is complete. */
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

const receivePart = async (ask: Ask<{ upload_id: string; part_number: string }>): Promise<Part> => {
  const { ctx, deps, params, caller } = ask
  const { upload_id } = params
  const { env_id } = caller.cause
  demandPlain(ctx)
  await pendingUpload(deps, env_id, { upload_id })
  const { part_number: written } = params
  const part_number = /^\d{1,6}$/.test(written) ? Number(written) : NaN
  const announced = announcedBytes(ctx)
  checkPart({ part_number, size: announced ?? 0, written })
  const part = { upload_id, part_number, content: incoming(ctx.req) }
  if (announced !== null) {
    sendContinue(ctx)
    return putPart(deps, { ...part, size: announced }, caller.cause)
  }
  return deps.openCounts.during(env_id, 'spooledParts', () => {
    sendContinue(ctx)
    return putSpooledPart(deps, { ...part, file: join(deps.scratchDir, newId()) }, caller.cause)
  })
}

export const uploadRoutes = [
  route({
    method: 'POST',
    path: '/v1/files/uploads',
    operationId: 'beginUpload',
    summary: 'Begin a multipart upload',
    description:
      'Send parts of `part_size` bytes in any order, also concurrently, and then complete the upload. With ' +
      '`expected_size`, the quota of the plan is checked at once and the total size at completion.',
    tag,
    needs: {
      type: 'file',
      action: 'create',
      or: 'update',
      path: (_: unknown, { body }: Pick<Ask, 'body'>) => [(body as { path: string }).path],
    },
    body: Type.Object({
      path: Type.String({
        description: 'Path of the file: 1 to 1024 bytes, with segments separated by single slashes',
        documented: PATH_RULES,
      }),
      expected_size: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: Number.MAX_SAFE_INTEGER,
          description: 'Size of the whole file in bytes',
        }),
      ),
      content_type: Type.Optional(
        Type.String({
          description: 'Media type of the file; default `application/octet-stream`',
          documented: MEDIA_TYPE_RULES,
        }),
      ),
    }),
    example: { path: 'backups/monday.tar', expected_size: 5368709120, content_type: 'application/x-tar' },
    errors: ['quota_exceeded'],
    reply: { kind: 'item', status: 201, schema: MultipartUpload },
    demand: ({ body, credential: { env_id, permissions }, deps }) =>
      demandWrite(deps, permissions, { env_id, path: checkedPath(body.path) }),
    handle: async (ask) => {
      const { body, deps, caller } = ask
      const path = checkedPath(body.path)
      const content_type = checkedContentType(body.content_type)
      const { expected_size } = body
      const upload = { path, content_type, expected_size, run_id: null }
      return item(present(await beginUpload(deps, upload, caller)), 201)
    },
  }),

  route({
    method: 'GET',
    path: '/v1/files/uploads/:upload_id',
    operationId: 'getUpload',
    summary: 'Get a multipart upload and its uploaded parts',
    description: 'To resume an interrupted upload, send the missing parts.',
    tag,
    needs: toWrite,
    reply: { kind: 'item', schema: UploadUnderWay },
    handle: async (ask) => {
      const { status, upload, parts } = await uploadOf(ask)
      if (status === 'completed') throw noUpload(upload.upload_id)
      const ordered = [...parts.values()].sort((a, b) => a.part_number - b.part_number)
      return item({ ...present(upload), parts: ordered.map(presentPart) })
    },
  }),

  route({
    method: 'PUT',
    path: '/v1/files/uploads/:upload_id/:part_number',
    operationId: 'uploadPart',
    summary: 'Upload a part',
    description:
      'A part has at most 256 MiB; every part except the last has at least 5 MiB. Another upload with the same number ' +
      'replaces the part. A plan limits how many parts without `Content-Length` are received at a time (429).',
    tag,
    needs: toWrite,
    rawBody: 'application/octet-stream',
    sendsContinue: true,
    errors: ['quota_exceeded'],
    reply: { kind: 'item', schema: UploadedPart },
    handle: async (ask) => {
      const part = await receivePart(ask)
      return item(presentPart(part), 200, { ETag: part.etag })
    },
  }),

  route({
    method: 'POST',
    path: '/v1/files/uploads/:upload_id/complete',
    operationId: 'completeUpload',
    summary: 'Complete a multipart upload',
    description:
      'Joins the parts to a file. Their numbers must begin at 1 without a gap. An existing file gets the new content ' +
      'and keeps its `file_id`.',
    tag,
    needs: toWrite,
    errors: ['quota_exceeded'],
    reply: { kind: 'item', schema: FileUpload },
    demand: async (ask) => {
      const { status, upload } = await uploadOf(ask)
      if (status !== 'pending') return // a repeat: the append decides
      const { env_id, permissions } = ask.credential
      await demandWrite(ask.deps, permissions, { env_id, path: upload.path })
    },
    handle: async (ask) => {
      const { upload_id } = ask.params
      const { permissions: rights } = ask.credential
      const file = await completeUpload(ask.deps, { upload_id, rights }, ask.caller.cause)
      return item(presentUpload(file), 200, { ETag: file.etag })
    },
  }),

  route({
    method: 'DELETE',
    path: '/v1/files/uploads/:upload_id',
    operationId: 'cancelUpload',
    summary: 'Cancel a multipart upload and delete its parts',
    tag,
    needs: toWrite,
    reply: { kind: 'none' },
    handle: async ({ deps, params: { upload_id }, caller }) => {
      await abortUpload(deps, { upload_id }, caller.cause)
      return none
    },
  }),
]
