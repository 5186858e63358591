import { destroyDataKeys } from '../../commands/dataKeys/destroyDataKeys.ts'
import { rotateDataKeys } from '../../commands/dataKeys/rotateDataKeys.ts'
import { item, none, operatorRoute } from '../route.ts'
import { RotatedDataKey } from '../schemas.ts'

const tag = 'Operator'

export const dataKeyRoutes = [
  operatorRoute({
    tag,
    method: 'POST',
    path: '/operator/envs/:env_id/rotate-data-key',
    operationId: 'rotateDataKeys',
    summary: 'Rotate the data keys of an environment',
    description:
      'Creates new keys for the environment and its projects, and encrypts the context variables again. The former ' +
      'keys are kept to decrypt older secrets.',
    reply: { kind: 'item', schema: RotatedDataKey },
    handle: async ({ params: { env_id }, deps, operator }) => {
      const { key_id, resealed } = await rotateDataKeys(deps, { env_id }, operator.cause)
      return item({ env_id, key_id, resealed })
    },
  }),

  operatorRoute({
    tag,
    method: 'DELETE',
    path: '/operator/envs/:env_id/data-keys',
    operationId: 'eraseSecrets',
    summary: 'Erase the secrets of an environment',
    description:
      'Destroys the data keys of the environment and its projects. Secrets that were encrypted with them cannot be ' +
      'read again, in any copy of the log. Context variables keep their names and need new values. Certificates of custom domains stay. ' +
      'This cannot be undone.',
    reply: { kind: 'none' },
    handle: async ({ params: { env_id }, deps, operator }) => {
      await destroyDataKeys(deps, { env_id }, operator.cause)
      return none
    },
  }),
]
