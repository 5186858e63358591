import { Name } from './texts.tsx'
import { actionsOf } from '../../access/permissions.ts'
import type { Permissions } from '../../client/index.ts'

const ACTIONS = ['create', 'read', 'update', 'delete', 'execute'] as const
type Action = (typeof ACTIONS)[number]

/** The chosen actions of each type, and the paths to which they apply, separated by commas. */
export type Grants = Readonly<Record<string, { readonly actions: readonly Action[]; readonly paths: string }>>

export const NO_GRANTS: Grants = {}

const NONE = { actions: [], paths: '*' } as const

/** The permission map of a grid. Throws if nothing is chosen. */
export const permissionsOf = (grants: Grants): Permissions => {
  const entries = Object.entries(grants).flatMap(([type, { actions, paths }]) =>
    actions.length === 0 ? [] : pathsOf(paths).map((path) => [`${type}:${path}`, actions] as const),
  )
  if (entries.length === 0) throw new Error('Permissions: expected at least one action, got none')
  return Object.fromEntries(entries)
}

const pathsOf = (text: string): readonly string[] => {
  const paths = text
    .split(',')
    .map((path) => path.trim())
    .filter((path) => path !== '')
  return paths.length === 0 ? ['*'] : paths
}

interface Props {
  /** The resource types that the credential may have. */
  readonly types: readonly string[]
  readonly value: Grants
  readonly onChange: (value: Grants) => void
}

/** The permissions of a new credential: a row for each type, a box for each of its actions. */
export const PermissionGrid = ({ types, value, onChange }: Props) => {
  const columns = ACTIONS.filter((action) => types.some((type) => actionsOf.get(type)?.includes(action)))
  const change = (type: string, patch: Partial<Grants[string]>): void =>
    onChange({ ...value, [type]: { ...(value[type] ?? NONE), ...patch } })
  return (
    <fieldset class="grid">
      <legend>Permissions</legend>
      <table>
        <thead>
          <tr>
            {['Type', ...columns, 'Paths'].map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {types.map((type) => {
            const { actions, paths } = value[type] ?? NONE
            const toggle = (action: Action): void =>
              change(type, {
                actions: actions.includes(action)
                  ? actions.filter((one) => one !== action)
                  : [...actions, action],
              })
            return (
              <tr key={type}>
                <th scope="row">{type}</th>
                {columns.map((action) => (
                  <td key={action} data-name={actionsOf.get(type)?.includes(action) ? action : undefined}>
                    {actionsOf.get(type)?.includes(action) && (
                      <input
                        type="checkbox"
                        aria-label={`${type} ${action}`}
                        checked={actions.includes(action)}
                        onChange={() => toggle(action)}
                      />
                    )}
                  </td>
                ))}
                <td data-name="Paths">
                  <input
                    aria-label={`Paths of ${type}`}
                    value={paths}
                    size={12}
                    spellcheck={false}
                    onInput={({ currentTarget }) => change(type, { paths: currentTarget.value })}
                  />
                </td>
              </tr>
            )
          })}
        </tbody>
      </table>
      <p class="hint">
        A path is the id or the name of a resource; * is every path. Separate paths by commas.
      </p>
    </fieldset>
  )
}

/** A permission map as a list. */
export const PermissionList = ({ permissions }: { readonly permissions: Permissions }) => {
  const entries = Object.entries(permissions)
  if (entries.length === 0) return <span class="hint">None</span>
  return (
    <ul class="permissions">
      {entries.map(([resource, actions]) => (
        <li key={resource}>
          {resource === '*:*' && actions.includes('*') ? (
            'Full access'
          ) : (
            <>
              <code>
                <Name of={resource} />
              </code>{' '}
              {actions.includes('*') ? 'every action' : actions.join(', ')}
            </>
          )}
        </li>
      ))}
    </ul>
  )
}
