import { destroyDataKeys } from '../../commands/dataKeys/destroyDataKeys.ts'
import { rotateDataKeys } from '../../commands/dataKeys/rotateDataKeys.ts'
import { operatorCause } from '../http/operator.ts'
import { item, none, route } from '../route.ts'
import { RotatedDataKey } from '../schemas.ts'

const shared = { tag: 'Operator', needs: null, operator: true } as const

export const dataKeyRoutes = [
  route({
    ...shared,
    method: 'POST',
    path: '/operator/envs/:env_id/rotate-data-key',
    operationId: 'rotateDataKeys',
    summary: 'Rotate the data keys of an environment',
    description:
      'Creates new keys for the environment and its projects, and encrypts the context variables again. The former ' +
      'keys are kept to decrypt older secrets.',
    reply: { kind: 'item', schema: RotatedDataKey },
    handle: async ({ params: { env_id }, deps, request_id }) => {
      const { key_id, resealed } = await rotateDataKeys(deps, { env_id }, operatorCause(request_id))
      return item({ env_id, key_id, resealed })
    },
  }),

  route({
    ...shared,
    method: 'DELETE',
    path: '/operator/envs/:env_id/data-keys',
    operationId: 'eraseSecrets',
    summary: 'Erase the secrets of an environment',
    description:
      'Destroys the data keys of the environment and its projects. Secrets that were encrypted with them cannot be ' +
      'read again, in any copy of the log. Context variables keep their names and need new values. This cannot be undone.',
    reply: { kind: 'none' },
    handle: async ({ params: { env_id }, deps, request_id }) => {
      await destroyDataKeys(deps, { env_id }, operatorCause(request_id))
      return none
    },
  }),
]
