import Type from 'typebox'
import { actionsOf, SERVICE_KEY_TYPES } from '../../access/permissions.ts'

/** Pieces of several resources. */

export const Uuid = Type.String({ format: 'uuid' })

export const Timestamp = Type.String({ format: 'date-time' })

export const Token = Type.String({ description: 'The secret token, returned only in this reply' })

export const nullable = <S extends Type.TSchema>(schema: S) => Type.Union([schema, Type.Null()])

/** With plain `Type.String()` keys, a record does not check the values of keys that contain a line break. */
const AnyName = Type.String({ pattern: '^[\\s\\S]*$' })

/** The document has one list of actions for all types; the service checks which of them a type has. */
const permissionMap = (types: readonly string[]) =>
  Type.Record(AnyName, Type.Array(Type.String()), {
    documented: {
      propertyNames: { type: 'string', pattern: `^(?:${types.join('|')}):[\\s\\S]+$` },
      additionalProperties: {
        type: 'array',
        minItems: 1,
        items: {
          type: 'string',
          enum: [...new Set(types.flatMap((type) => actionsOf.get(type) ?? [])), '*'],
        },
      },
    },
  })

/** A JSON map from `type:path` to actions (SPEC.md, Permission map). */
export const Permissions = permissionMap([...actionsOf.keys(), '\\*'])

/** The permission types that a service key may have. */
export const ServiceKeyPermissions = permissionMap(SERVICE_KEY_TYPES)
