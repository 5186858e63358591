import { useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import { isGone } from '../../frame/api.ts'
import { useLoaded } from '../../frame/load.ts'
import { linkTo, param, query } from '../../frame/router.ts'
import { Json } from '../../parts/json.tsx'
import { List } from '../../parts/list.tsx'
import { offsetOf, PAGE, pageOf } from '../../parts/pager.tsx'
import type { Column } from '../../parts/table.tsx'
import { countText, Empty } from '../../parts/texts.tsx'
import { type Compared, compare } from './compare.ts'
import type { Kind, Resource } from './kind.ts'
import { pageAt } from './resources.ts'
import { comparable, isWhole, NOTHING_READ, type PageAt, readOn, type Sides } from './sides.ts'

/** The resources that are compared at first, and with each further step. */
const STEP = 1000

/** The parameter of the URL with the offset: the list of changes on the same page has another one. */
export const PAST_OFFSET = 'past_offset'

interface Props {
  readonly kind: Kind
}

/** The resources of a kind at the chosen time, beside those of the present. */
export const Differences = ({ kind }: Props) => {
  const [as_of, id] = [param('as_of'), param('id')]
  if (kind.chosen !== undefined && id === '') return <Empty>{kind.chosen}: enter one.</Empty>
  const Content = as_of ? ThenAndNow : Now
  return <Content key={JSON.stringify([kind.operation, as_of, id])} kind={kind} />
}

const NAME: Column<Pick<Compared, 'name' | 'id'>> = {
  name: 'Resource',
  cell: ({ name, id }) => (
    <>
      {name !== id && <strong>{name}</strong>} <code>{id}</code>
    </>
  ),
}

/** Projects lead to the names of their secrets. */
const columnsOf = <Row extends Compared>(
  { id }: Kind,
  others: readonly Column<Row>[],
): readonly Column<Row>[] => [
  NAME,
  ...others,
  ...(id === 'project_id' ? [{ name: 'More', isShort: true, cell: secretsOf }] : []),
]

const secretsOf = ({ id }: Pick<Compared, 'id'>) => (
  <a
    href={linkTo('/history', { ...Object.fromEntries(query.value), show: 'context', id, [PAST_OFFSET]: '' })}
  >
    Names of secrets
  </a>
)

/** The present resources, while no time is chosen. */
const Now = ({ kind }: Props) => {
  const id = param('id')
  const offset = offsetOf(PAST_OFFSET)
  const page = useLoaded(
    (signal) => pageAt(kind, { id, as_of: '', signal })({ limit: PAGE, offset }),
    [kind, id, offset],
  )
  const rows = page.data && compare(kind, page.data.data, page.data.data)
  return (
    <List
      of={{ ...page, data: page.data && rows && { data: rows, pagination: page.data.pagination } }}
      offset={PAST_OFFSET}
      caption={`${kind.text}, now`}
      columns={columnsOf(kind, [])}
      idOf={(one) => one.id}
      empty={<Empty>There is none now.</Empty>}
    />
  )
}

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

const DIFFERENCES: readonly Column<Compared>[] = [
  {
    name: 'Difference',
    cell: ({ difference }) => <span class={`status ${STATES[difference]}`}>{difference}</span>,
  },
  { name: 'Then', cell: (one) => side('then', one, one.was) },
  { name: 'Now', cell: (one) => side('now', one, one.is) },
]

interface Comparison {
  /** Those that differ are first. */
  readonly rows: readonly Compared[]
  readonly sides: Sides
}

const NONE = { data: [], pagination: { total: 0, limit: PAGE, offset: 0, has_more: false } }

/** Compares the lists as far as `wanted`. What was read for the step before is kept. */
const useComparison = (kind: Kind, wanted: number) => {
  const read = useRef(NOTHING_READ)
  const [as_of, id] = [param('as_of'), param('id')]
  return useLoaded(
    async (signal): Promise<Comparison> => {
      const past = pageAt(kind, { id, as_of, signal })
      const now = pageAt(kind, { id, as_of: '', signal })
      const present: PageAt = (page) =>
        now(page).catch((error: unknown) => {
          if (isGone(error)) return NONE // what it belongs to was deleted since
          throw error
        })
      read.current = await readOn(kind.id, read.current, { past, present }, wanted)
      const both = comparable(kind.id, read.current)
      return { rows: compare(kind, both.past, both.present), sides: read.current }
    },
    [wanted],
  )
}

const ThenAndNow = ({ kind }: Props) => {
  const wanted = useSignal(STEP)
  const compared = useComparison(kind, wanted.value)
  const { rows, sides } = compared.data ?? {}
  return (
    <>
      {rows && sides && (
        <p role="status">
          {countText(rows.length, 'resource')}{' '}
          {isWhole(sides) ? 'compared' : 'compared so far, the newest first'}: {differingText(rows)} There{' '}
          {were(sides.past.total)} then, and there {are(sides.present.total)} now.{' '}
          {!isWhole(sides) && (
            <button type="button" onClick={() => (wanted.value = rows.length + STEP)}>
              Compare more
            </button>
          )}
        </p>
      )}
      <List
        of={{ ...compared, data: rows && pageOf(rows, offsetOf(PAST_OFFSET)) }}
        offset={PAST_OFFSET}
        caption={`${kind.text}, then and now`}
        columns={columnsOf(kind, DIFFERENCES)}
        idOf={(one) => one.id}
        empty={<Empty>There was none then, and there is none now.</Empty>}
      />
      {compared.error && kind.narrower !== undefined && (
        <p>
          <a
            href={linkTo('/history', {
              ...Object.fromEntries(query.value),
              show: kind.narrower,
              id: '',
              [PAST_OFFSET]: '',
            })}
          >
            Compare a part of them
          </a>
        </p>
      )}
    </>
  )
}

const differingText = (rows: readonly Compared[]): string => {
  const count = rows.filter(({ difference }) => difference !== 'same').length
  if (count === 0) return 'none differs.'
  return `${count.toLocaleString('en')} ${count === 1 ? 'differs' : 'differ'}.`
}

const were = (count: number): string => `${count === 1 ? 'was' : 'were'} ${count.toLocaleString('en')}`
const are = (count: number): string => `${count === 1 ? 'is' : 'are'} ${count.toLocaleString('en')}`
