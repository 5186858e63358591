import Type from 'typebox'
import { KEY_PATTERN } from '../schemas/patterns.ts'
import { masterKeyStatus } from '../../commands/installation/masterKeyStatus.ts'
import { rotateMasterKey } from '../../commands/installation/rotateMasterKey.ts'
import { item, operatorRoute } from '../route.ts'
import { MasterKeyStatus } from '../schemas.ts'

const tag = 'Operator'
const path = '/operator/secrets/rotate-master'

/** 32 bytes in base64. */
const MasterKey = Type.String({ pattern: KEY_PATTERN, writeOnly: true })

export const masterKeyRoutes = [
  operatorRoute({
    tag,
    method: 'POST',
    path,
    operationId: 'rotateMasterKey',
    summary: 'Replace the master key',
    description:
      'Every data key is wrapped again in the background; credentials, webhook URLs and secrets remain valid. Without ' +
      '`SVC_MASTER_KEY`, the new key is `master_key` or a random one, and is stored in `secrets.json` first. With ' +
      '`SVC_MASTER_KEY`, every node needs the new key in it and the former one in `SVC_MASTER_KEY_PREVIOUS`. A ' +
      'repetition during a rotation returns its progress.',
    body: Type.Object({ master_key: Type.Optional(MasterKey) }),
    example: {},
    errors: ['conflict'],
    reply: { kind: 'item', status: 202, schema: MasterKeyStatus },
    handle: async ({ deps, body, operator }) => {
      const master_key = body.master_key === undefined ? undefined : Buffer.from(body.master_key, 'base64')
      return item(await rotateMasterKey(deps, { master_key }, operator.cause), 202)
    },
  }),

  operatorRoute({
    tag,
    method: 'GET',
    path,
    operationId: 'getMasterKeyStatus',
    summary: 'Get the progress of the rotation of the master key',
    reply: { kind: 'item', schema: MasterKeyStatus },
    handle: async ({ deps }) => item(await masterKeyStatus(deps)),
  }),
]
