import type { Context } from 'koa'
import Type from 'typebox'
import { counted } from '../../text/counted.ts'
import { AppError, isAppError } from '../../errors.ts'
import { demand } from '../../access/permissions.ts'
import { pastOf } from '../../commands/audit/past.ts'
import { fileAt } from '../../commands/files/fileAt.ts'
import { deleteFile } from '../../commands/files/deleteFile.ts'
import { readCurrent } from '../../commands/files/readCurrent.ts'
import { readFile } from '../../commands/files/readFile.ts'
import { storeFile } from '../../commands/files/storeFile.ts'
import type { Content } from '../../content/blobContent.ts'
import { checkedContentType, checkedPath, MAX_PATH_BYTES } from '../../content/fileChecks.ts'
import type { File as StoredFile } from '../../events/file.ts'
import type { FileDoc } from '../../projections/files.ts'
import { demandSame, isNotModified, isSame, type Range, rangeOf } from '../http/conditions.ts'
import { sendContent } from '../http/jsonReply.ts'
import { incoming } from '../http/incoming.ts'
import { sendContinue } from '../http/expectContinue.ts'
import { AsOfQuery } from '../asOf.ts'
import { type Ask, item, none, own, route } from '../route.ts'
import { listOf, pageQuery } from '../paging.ts'
import { fieldsOf } from '../present/fieldsOf.ts'
import { File, FileUpload } from '../schemas.ts'

const tag = 'Files'

/** Maximum bytes of a simple upload (SPEC.md, Limits). */
const MAX_BODY_BYTES = 300 << 20

const UPLOAD = '/v1/files/upload/'
const DOWNLOAD = '/v1/files/download/'

/** Sorts before every character that a path may contain. */
const BELOW_PATHS = '\u0001'

/** A file in a list. */
const present = (doc: FileDoc) => fieldsOf(File, doc)

/** A file in the reply to an upload (SPEC.md, File: without the runs that wrote it). */
export const presentUpload = (file: StoredFile) => fieldsOf(FileUpload, file)

/** Returns a file of the caller's environment. Files of other environments do not exist (I7). */
const fileOf = async ({
  params,
  credential,
  deps,
}: Pick<Ask<{ file_id: string }>, 'params' | 'credential' | 'deps'>): Promise<FileDoc> => {
  await deps.views.settled('files')
  const file = await deps.views.files.get(params.file_id)
  if (file?.env_id !== credential.env_id) throw new AppError('not_found', `No file ${params.file_id}`)
  return file
}

const byId = (action: 'read' | 'delete') => ({
  type: 'file',
  action,
  /** A credential for one path must not learn whether another file exists. */
  path: async (params: { file_id: string }, { credential, deps }: Pick<Ask, 'credential' | 'deps'>) => {
    const file = await fileOf({ params, credential, deps }).catch((error: unknown) => {
      if (isAppError(error, 'not_found')) return null
      throw error
    })
    return file ? [file.path] : []
  },
})

/** The path of the file: everything after the prefix, decoded. */
const pathIn = (ctx: Context, prefix: string): string => {
  try {
    return checkedPath(decodeURIComponent(ctx.path.slice(prefix.length)))
  } catch (error) {
    if (error instanceof URIError) throw new AppError('bad_request', 'path: expected URI encoding in UTF-8')
    throw error
  }
}

/** The announced size of the body; null if the client sends none. */
export const announcedBytes = (ctx: Context): number | null => {
  const header = ctx.get('Content-Length')
  return header === '' ? null : Number(header)
}

/**
 * Refuses content that is not to be stored as it is: a part of it would replace the whole (RFC 9110, 14.5), and a file keeps
 * its type and not its encoding, so a download could not be read.
 */
export const demandPlain = (ctx: Context): void => {
  if (ctx.get('Content-Range') !== '')
    throw new AppError('bad_request', 'Content-Range: not supported, expected the whole content')
  const encoding = ctx.get('Content-Encoding')
  if (encoding !== '' && encoding.toLowerCase() !== 'identity')
    throw new AppError(
      'bad_request',
      'Content-Encoding: not supported, expected the content as it is to be stored, with a Content-Type such as application/gzip',
    )
}

const upload = async (ask: Ask<{ path: string }>): Promise<StoredFile> => {
  const { ctx, deps, caller, credential } = ask
  const path = pathIn(ctx, UPLOAD)
  demandPlain(ctx)
  const content_type = checkedContentType(ctx.get('Content-Type'))
  const content = () => {
    sendContinue(ctx)
    return incoming(ctx.req)
  }
  const announced = announcedBytes(ctx)
  const { permissions: rights } = credential
  const wanted = { path, content_type, run_id: null, rights, announced, maxBytes: MAX_BODY_BYTES, content }
  return storeFile(deps, wanted, caller.cause)
}

/** The headers prevent browsers from executing user content or showing it as a page of this service. */
const setHeaders = (ctx: Context, { path, etag, content_type, updated_at }: StoredFile): void => {
  ctx.set({
    'Content-Type': content_type,
    ETag: etag,
    'Last-Modified': new Date(updated_at).toUTCString(),
    'Accept-Ranges': 'bytes',
    'Cache-Control': 'private, no-cache',
    'Content-Security-Policy': "sandbox; default-src 'none'",
  })
  ctx.attachment(path.slice(path.lastIndexOf('/') + 1))
}

interface Opened {
  readonly file: StoredFile
  readonly range: Range | null
  /** Null without a body. */
  readonly content: Content | null
}

const opened = async ({ ctx, deps }: Pick<Ask, 'ctx' | 'deps'>, file: StoredFile): Promise<Opened> => {
  demandSame((name) => ctx.get(name), file)
  if (isCurrent(ctx, file) || ctx.method !== 'GET') return { file, range: null, content: null }
  const range = isSame(ctx.get('If-Range'), file.etag) ? rangeOf(ctx.get('Range'), file.size) : null
  if (range === 'none') {
    ctx.set('Content-Range', `bytes */${file.size}`)
    throw new AppError(
      'range_not_satisfiable',
      `Range: expected a range within the ${counted(file.size, 'byte')} of the file`,
    )
  }
  return { file, range, content: await readFile(deps, file, range ?? undefined) }
}

const isCurrent = (ctx: Context, { etag }: StoredFile): boolean =>
  isNotModified(ctx.get('If-None-Match'), etag)

const download = async (ask: Pick<Ask, 'ctx' | 'deps'>, find: () => Promise<StoredFile>): Promise<void> => {
  const { ctx } = ask
  const { file, range, content } = await readCurrent(find, (found) => opened(ask, found))
  setHeaders(ctx, file)
  if (isCurrent(ctx, file)) {
    ctx.status = 304
    return
  }
  ctx.status = range ? 206 : 200
  if (content) sendContent(ctx, content)
  else ctx.length = file.size
  if (range) ctx.set('Content-Range', `bytes ${range.from}-${range.to}/${file.size}`)
}

const CONTENT = {
  kind: 'bytes',
  description: 'The content, with the `Content-Type` of its upload',
  hasEtag: true,
  takesRange: true,
} as const

export const fileRoutes = [
  route({
    method: 'GET',
    path: '/v1/files',
    operationId: 'listFiles',
    summary: 'List files by path',
    tag,
    needs: { type: 'file', action: 'read' },
    query: pageQuery({
      prefix: Type.Optional(
        Type.String({
          maxLength: MAX_PATH_BYTES,
          description: 'Only files whose path begins with this prefix',
        }),
      ),
      after: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: MAX_PATH_BYTES,
          description: 'Only files whose path sorts after this one, such as a `next`',
        }),
      ),
    }),
    reply: { kind: 'list', schema: File },
    handle: ({ query: { after, ...query }, credential: { env_id }, deps: { views } }) => {
      const from = after === undefined ? {} : { from: `${after}${BELOW_PATHS}` }
      const bounds = { equal: { env_id }, sort: 'path', ...from, ...query }
      return listOf(views, 'files', bounds, present, ({ path }) => path)
    },
  }),

  route({
    method: 'PUT',
    path: '/v1/files/upload/*path',
    operationId: 'uploadFile',
    summary: 'Upload a file in one request',
    description:
      'The body is the content of at most 300 MiB, or less if the plan has a lower limit. `Content-Type` is stored with ' +
      'the file. An existing file gets the new content and keeps its `file_id`; this requires the permission `update` ' +
      'instead of `create`.',
    tag,
    needs: { type: 'file', action: 'create', or: 'update', path: ({ path }: { path: string }) => [path] },
    rawBody: 'application/octet-stream',
    sendsContinue: true,
    errors: ['quota_exceeded'],
    reply: { kind: 'item', schema: FileUpload },
    handle: async (ask) => {
      const file = await upload(ask)
      return item(presentUpload(file), 200, { ETag: file.etag })
    },
  }),

  route({
    method: 'GET',
    path: '/v1/files/download/*path',
    operationId: 'downloadFileAt',
    summary: 'Download the file at a path',
    description: 'As the download by `file_id`.',
    tag,
    needs: { type: 'file', action: 'read', path: ({ path }: { path: string }) => [path] },
    errors: ['not_found', 'precondition_failed', 'range_not_satisfiable'],
    reply: CONTENT,
    handle: async (ask) => {
      const path = pathIn(ask.ctx, DOWNLOAD)
      await download(ask, async () => {
        const file = await fileAt(ask.deps, ask.credential.env_id, path)
        if (!file) throw new AppError('not_found', `No file ${JSON.stringify(path)}`)
        return file
      })
      return own
    },
  }),

  route({
    method: 'GET',
    path: '/v1/files/:file_id',
    operationId: 'getFile',
    summary: 'Get the metadata of a file',
    tag,
    needs: byId('read'),
    query: AsOfQuery,
    reply: { kind: 'item', schema: File },
    handle: async (ask) => {
      const { as_of } = ask.query
      if (as_of === undefined) return item(present(await fileOf(ask)))
      const { deps, credential } = ask
      const file = await (await pastOf(deps, as_of)).file(credential.env_id, ask.params.file_id)
      if (!file) throw new AppError('not_found', `There was no file ${ask.params.file_id} then`)
      demand(credential.permissions, { type: 'file', actions: ['read'], paths: [file.path] })
      return item(present(file))
    },
  }),

  route({
    method: 'GET',
    path: '/v1/files/:file_id/download',
    operationId: 'downloadFile',
    summary: 'Download a file',
    description:
      'A request with `Range` gets one range of bytes with status 206; with an `ETag` in `If-Range`, only if it is the ' +
      'current one, otherwise the whole file. A request with the current `ETag` in `If-None-Match` gets a 304 without content. ' +
      'With another `ETag` in `If-Match`, or an earlier time in `If-Unmodified-Since`, it gets a 412.',
    tag,
    needs: byId('read'),
    errors: ['precondition_failed', 'range_not_satisfiable'],
    reply: CONTENT,
    handle: async (ask) => {
      await download(ask, () => fileOf(ask))
      return own
    },
  }),

  route({
    method: 'DELETE',
    path: '/v1/files/:file_id',
    operationId: 'deleteFile',
    summary: 'Delete a file',
    tag,
    needs: byId('delete'),
    reply: { kind: 'none' },
    handle: async (ask) => {
      const { path, file_id } = await fileOf(ask)
      await deleteFile(ask.deps, { path, file_id }, ask.caller.cause)
      return none
    },
  }),
]
