import { Readable } from 'node:stream'
import type { Context } from 'koa'
import Type from 'typebox'
import { readRows } from '../../commands/backups/readRows.ts'
import type { OpenBackup } from '../../commands/backups/backups.ts'
import type { ApiDeps } from '../deps.ts'
import { leaving } from '../http/leaving.ts'
import { item, none, operatorRoute, own } from '../route.ts'
import { Backup } from '../schemas.ts'

const tag = 'Operator'
const path = '/operator/backups'

/** Keys of blobs that are read one after the other for a list: one chunk of the reply. */
const LISTED = 256

const Offset = Type.Integer({ minimum: 0, maximum: 1e15, default: 0 })

const BINARY = { kind: 'bytes', type: 'application/octet-stream' } as const

/** Replies with bytes of a backup, which remains open as long as they are sent. */
const sendFrom = async (
  { backups }: Pick<ApiDeps, 'backups'>,
  { ctx, backup_id }: { readonly ctx: Context; readonly backup_id: string },
  open: (backup: OpenBackup) => Promise<Readable>,
): Promise<typeof own> => {
  const body = await open(backups.use(backup_id, leaving(ctx)))
  ctx.type = 'application/octet-stream'
  ctx.body = body
  return own
}

/** Reads the first chunk before the reply begins, so that its failure is an error reply. */
const begun = async (chunks: AsyncGenerator<Buffer>): Promise<Readable> => {
  const first = await chunks.next()
  return Readable.from(
    (async function* () {
      if (first.done) return
      yield first.value
      yield* chunks
    })(),
    { objectMode: false, highWaterMark: 1 },
  )
}

async function* listOfBlobs({ blobs }: OpenBackup): AsyncGenerator<Buffer> {
  const lines: string[] = []
  const flush = () => Buffer.from(lines.splice(0).join(''))
  for await (const { key, size } of blobs.list()) {
    lines.push(`${JSON.stringify([key, size])}\n`)
    if (lines.length === LISTED) yield flush()
  }
  if (lines.length > 0) yield flush()
}

const keyIn = (ctx: Context, backup_id: string): string =>
  ctx.path.slice(`${path}/${backup_id}/blobs/`.length)

export const backupRoutes = [
  operatorRoute({
    tag,
    method: 'POST',
    path,
    operationId: 'beginBackup',
    summary: 'Begin a backup',
    description:
      'Returns a position of the log. Until the backup ends, the log up to this position and all blobs of that moment can ' +
      'be read, although blobs are removed meanwhile. Use `svc backup`, which reads and checks them. Only for embedded ' +
      'engines. A backup without requests ends after 5 minutes.',
    errors: ['conflict'],
    reply: { kind: 'item', status: 201, schema: Backup },
    handle: async ({ deps, operator }) => {
      const { log: _, blobs: __, ...begun } = await deps.backups.begin(operator.cause)
      return item(begun, 201)
    },
  }),

  operatorRoute({
    tag,
    method: 'GET',
    path: `${path}/:backup_id/log`,
    operationId: 'readBackupLog',
    summary: 'Read the log of a backup',
    description:
      'Rows of the log as they are stored, from the one that contains the position after `after`. Each row is preceded by ' +
      'a line with its first position, the number of its events and its bytes, and followed by a newline.',
    query: Type.Object({ after: Type.Optional(Offset) }),
    reply: BINARY,
    handle: ({ deps, ctx, params: { backup_id }, query: { after = 0 } }) =>
      sendFrom(deps, { ctx, backup_id }, ({ log }) => begun(readRows(log, after))),
  }),

  operatorRoute({
    tag,
    method: 'GET',
    path: `${path}/:backup_id/blobs`,
    operationId: 'listBackupBlobs',
    summary: 'List the blobs of a backup',
    description:
      'One line `["<key>", <bytes>]` for each blob. A blob that is removed meanwhile may be listed twice.',
    reply: BINARY,
    handle: ({ deps, ctx, params: { backup_id } }) =>
      sendFrom(deps, { ctx, backup_id }, (backup) => begun(listOfBlobs(backup))),
  }),

  operatorRoute({
    tag,
    method: 'GET',
    path: `${path}/:backup_id/blobs/*blob_key`,
    operationId: 'readBackupBlob',
    summary: 'Read a blob of a backup',
    description: 'Data keys are encrypted with the master key. `from` continues an interrupted read.',
    query: Type.Object({ from: Type.Optional(Offset) }),
    reply: BINARY,
    handle: ({ deps, ctx, params: { backup_id }, query: { from = 0 } }) =>
      sendFrom(deps, { ctx, backup_id }, ({ blobs }) => blobs.get(keyIn(ctx, backup_id), { from })),
  }),

  operatorRoute({
    tag,
    method: 'POST',
    path: `${path}/:backup_id/complete`,
    operationId: 'completeBackup',
    summary: 'End a backup that was read completely',
    description:
      'The reply is 409 if the master key was replaced meanwhile: the data keys that were read do not belong to the ' +
      'position then.',
    errors: ['conflict'],
    reply: { kind: 'none' },
    handle: async ({ deps, params: { backup_id } }) => {
      await deps.backups.complete(backup_id)
      return none
    },
  }),

  operatorRoute({
    tag,
    method: 'DELETE',
    path: `${path}/:backup_id`,
    operationId: 'endBackup',
    summary: 'Give up a backup',
    description: 'A backup that has ended already is no error.',
    reply: { kind: 'none' },
    handle: async ({ deps, params: { backup_id } }) => {
      await deps.backups.end(backup_id)
      return none
    },
  }),
]
