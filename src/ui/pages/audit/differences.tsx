import { useLoaded } from '../../frame/load.ts'
import { TooMany } from '../../frame/readAll.ts'
import { linkTo, param, query } from '../../frame/router.ts'
import { Json } from '../../parts/json.tsx'
import { List } from '../../parts/list.tsx'
import type { Column } from '../../parts/table.tsx'
import { Empty } from '../../parts/texts.tsx'
import { type Compared, compare } from './compare.ts'
import { isMissing, type KINDS, MOST, type Resource, resourcesAt } from './resources.ts'

const STATES = {
  same: 'good',
  changed: 'warn',
  'created since': 'running',
  'deleted since': 'cancelled',
} as const

const side = (name: string, { id }: Compared, resource: Resource | null) => {
  if (!resource) return <span class="hint">Did not exist</span>
  if (Object.keys(resource).length === 0) return <span class="hint">The same</span>
  return <Json value={resource} name={`${name} ${id}`} />
}

/** The resources of a kind at the chosen time, beside those of the present. */
export const Differences = ({ kind }: { readonly kind: (typeof KINDS)[string] }) => {
  const [as_of, id] = [param('as_of'), param('id')]
  const isChosen = kind.chosen === undefined || id !== ''
  const both = useLoaded(
    async (signal) => {
      if (!isChosen) return []
      const now = await resourcesAt(kind, { id, as_of: '', signal }).catch((error: unknown) => {
        if (as_of && isMissing(error)) return [] // it was deleted since
        throw error
      })
      return compare(kind, as_of ? await resourcesAt(kind, { id, as_of, signal }) : now, now)
    },
    [kind, as_of, id],
  )
  const columns: readonly Column<Compared>[] = [
    {
      name: 'Resource',
      cell: (one) => (
        <>
          <strong>{one.name}</strong> <code>{one.id}</code>{' '}
          {kind.id === 'project_id' && (
            <a href={linkTo('/history', { ...Object.fromEntries(query.value), show: 'context', id: one.id })}>
              Names of secrets
            </a>
          )}
        </>
      ),
    },
    {
      name: 'Difference',
      cell: ({ difference }) => <span class={`status ${STATES[difference]}`}>{difference}</span>,
    },
    { name: 'Then', cell: (one) => side('then', one, one.was) },
    { name: 'Now', cell: (one) => side('now', one, one.is) },
  ]
  const isTooLong = both.error instanceof TooMany
  if (!isChosen) return <Empty>{kind.chosen}: enter one.</Empty>
  return (
    <>
      {isTooLong ? (
        <TooLong kind={kind} />
      ) : (
        <List
          of={{ ...both, data: both.data && { data: both.data } }}
          caption={`${kind.text}, then and now`}
          columns={as_of ? columns : columns.slice(0, 1)}
          idOf={(one) => one.id}
          empty={<Empty>There was none then, and there is none now.</Empty>}
        />
      )}
    </>
  )
}

/** Why a long list is not compared, and what shows the same. */
const TooLong = ({ kind: { text, single } }: { readonly kind: (typeof KINDS)[string] }) => (
  <Empty>
    {text}: there are more than {MOST.toLocaleString('en')}, so they are not compared as a whole.{' '}
    {single !== undefined && (
      <>
        <a href={linkTo('/history', { ...Object.fromEntries(query.value), show: single, id: '' })}>
          Compare a single one
        </a>{' '}
        by its id or name.{' '}
      </>
    )}
    The list of changes below has every change: filter it by resource and time.
  </Empty>
)
