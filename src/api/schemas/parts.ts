import Type from 'typebox'
import { actionsOf, SERVICE_KEY_TYPES } from '../../access/permissions.ts'

/** Pieces of several resources. */

export const Uuid = Type.String({ format: 'uuid' })

export const Timestamp = Type.String({ format: 'date-time' })

export const Token = Type.String({ description: 'The secret token, returned only in this reply' })

export const nullable = <S extends Type.TSchema>(schema: S) => Type.Union([schema, Type.Null()])

const actionList = (actions: readonly string[]) => ({
  type: 'array',
  minItems: 1,
  items: { enum: [...actions, '*'] },
})

/** With plain `Type.String()` keys, a record does not check the values of keys that contain a line break. */
const AnyName = Type.String({ pattern: '^[\\s\\S]*$' })

const permissionMap = (types: readonly string[], more: Record<string, unknown> = {}) =>
  Type.Record(AnyName, Type.Array(Type.String()), {
    documented: {
      patternProperties: {
        ...more,
        ...Object.fromEntries(
          types.map((type) => [`^${type}:[\\s\\S]`, actionList(actionsOf.get(type) ?? [])]),
        ),
      },
      additionalProperties: false,
    },
  })

/** A JSON map from `type:path` to actions (SPEC.md, Permission map). */
export const Permissions = permissionMap([...actionsOf.keys()], { '^\\*:\\*$': actionList([]) })

/** The permission types that a service key may have. */
export const ServiceKeyPermissions = permissionMap(SERVICE_KEY_TYPES)
