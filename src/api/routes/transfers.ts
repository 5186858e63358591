import { Readable } from 'node:stream'
import Type from 'typebox'
import { exportEnv } from '../../commands/transfer/exportEnv.ts'
import { importEnv } from '../../commands/transfer/importEnv.ts'
import { AppError } from '../../errors.ts'
import { TransferKey } from '../../secrets/transferKey.ts'
import { incoming } from '../http/incoming.ts'
import { item, operatorRoute, own } from '../route.ts'
import { ImportedEnv } from '../schemas.ts'
import { KEY_PATTERN } from '../schemas/patterns.ts'

const tag = 'Operator'
const KEY_HEADER = 'Svc-Transfer-Key'
const KEY = new RegExp(KEY_PATTERN)

const transferKeyIn = (text: string, field: string): TransferKey => {
  if (!KEY.test(text)) throw new AppError('bad_request', `${field}: expected 32 bytes in base64`)
  return new TransferKey(Buffer.from(text, 'base64'))
}

export const transferRoutes = [
  operatorRoute({
    tag,
    method: 'POST',
    path: '/operator/envs/:env_id/export',
    operationId: 'exportEnv',
    summary: 'Export an environment',
    description:
      'Returns a file for `POST /operator/imports` of another installation: lines of JSON, with the bytes of blobs between ' +
      'them. Secrets in it are encrypted, and their keys are encrypted with `transfer_key`. Use `svc export`. The ' +
      'environment must be at rest: 409 while runs are in progress. The last line is `end`, or `error` with the reason.',
    body: Type.Object({ transfer_key: Type.String({ pattern: KEY_PATTERN, writeOnly: true }) }),
    example: { transfer_key: `${'A'.repeat(43)}=` },
    errors: ['conflict'],
    reply: { kind: 'bytes', type: 'application/octet-stream' },
    handle: async ({ deps, ctx, params: { env_id }, body, operator }) => {
      const transferKey = transferKeyIn(body.transfer_key, 'transfer_key')
      const records = await exportEnv(deps, { env_id, transferKey })
      const { correlation_id: request_id, ip } = operator.cause
      deps.logger.info('An environment is exported', { env_id, request_id, ip }) // it leaves no fact
      ctx.type = 'application/octet-stream'
      ctx.body = Readable.from(records, { objectMode: false })
      return own
    },
  }),

  operatorRoute({
    tag,
    method: 'POST',
    path: '/operator/imports',
    operationId: 'importEnv',
    summary: 'Import an environment',
    description:
      `The body is a file of \`svc export\`, and \`${KEY_HEADER}\` the key with which it was exported. Use \`svc import\`. ` +
      'Ids and times are kept. The reply is 409 if the environment exists with other content. A repetition continues an ' +
      'import that was interrupted, and changes nothing after one that was completed.',
    rawBody: 'application/octet-stream',
    errors: ['conflict'],
    reply: { kind: 'item', status: 201, schema: ImportedEnv },
    handle: async ({ deps, ctx, operator }) => {
      const transferKey = transferKeyIn(ctx.get(KEY_HEADER), KEY_HEADER)
      return item(await importEnv(deps, { content: incoming(ctx.req), transferKey }, operator.cause), 201)
    },
  }),
]
