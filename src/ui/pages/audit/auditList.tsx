import type { AuditedFact, Page } from '../../../client/index.ts'
import { isoOf } from '../../../clock.ts'
import { useLoaded } from '../../frame/load.ts'
import { linkTo, param, path, query, setQuery } from '../../frame/router.ts'
import { Filters, isoOfField, TextFilter } from '../../parts/filters.tsx'
import { Json } from '../../parts/json.tsx'
import { offsetOf, PAGE } from '../../parts/pager.tsx'
import { List } from '../../parts/list.tsx'
import type { Column } from '../../parts/table.tsx'
import { Empty, shortId, Time } from '../../parts/texts.tsx'

export type AuditQuery = Readonly<Record<string, string | number>>

interface Props {
  readonly title: string
  /** The column that leads to the past of what a fact changed. */
  readonly past: Column<AuditedFact>
  readonly load: (query: AuditQuery, signal: AbortSignal) => Promise<Page<AuditedFact>>
}

const TEXTS = ['actor', 'resource', 'type'] as const
const TIMES = ['from', 'to'] as const

const filters = (): AuditQuery =>
  Object.fromEntries(
    [
      ...TEXTS.map((name) => [name, param(name)] as const),
      ...TIMES.map((name) => [name, isoOfField(param(name))] as const),
    ].filter(([, value]) => value !== ''),
  )

/** A link that sets one filter of the list. */
const Only = ({
  name,
  value,
  text = value,
}: {
  readonly name: string
  readonly value: string
  readonly text?: string
}) => (
  <a
    href={linkTo(path.value, { ...Object.fromEntries(query.value), offset: '', [name]: value })}
    title={`Only this ${name}: ${value}`}
  >
    {text}
  </a>
)

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** The kind of a stream and the end of its id: whole ids would make each row four lines high. */
const shortStream = (stream: string): string => {
  const [kind = '', ...id] = stream.split('-')
  return id.length < 5 ? stream : `${kind} ${shortId(stream)}`
}

const COLUMNS: readonly Column<AuditedFact>[] = [
  { name: 'Time', cell: ({ time }) => <Time at={time} /> },
  { name: 'Change', isShort: true, cell: ({ type }) => <Only name="type" value={type} /> },
  {
    name: 'Actor',
    cell: ({ actor: { credential_id, credential_type, ip } }) => (
      <>
        {credential_type}{' '}
        {credential_id && (
          <Only
            name="actor"
            value={credential_id}
            text={UUID.test(credential_id) ? shortId(credential_id) : credential_id}
          />
        )}{' '}
        {ip && <span class="hint">from {ip}</span>}
      </>
    ),
  },
  { name: 'Stream', cell: ({ stream }) => <code title={stream}>{shortStream(stream)}</code> },
  {
    name: 'Details',
    isShort: true,
    cell: ({ data, position, type, stream }) => (
      <details>
        <summary>Show</summary>
        <p>
          <code>{stream}</code>
        </p>
        <Json value={data} name={`${type} at ${position}`} />
      </details>
    ),
  },
]

/** Leads to the state before a fact, on the same page. */
export const BEFORE: Column<AuditedFact> = {
  name: 'Past',
  isShort: true,
  cell: ({ time }) => (
    <a
      href={linkTo(path.value, {
        ...Object.fromEntries(query.value),
        as_of: isoOf(Date.parse(time) - 1),
      })}
    >
      The state before
    </a>
  ),
}

/** Who changed what, with filters in the URL. */
export const AuditList = ({ title, load, past }: Props) => {
  const given = filters()
  const offset = offsetOf()
  const facts = useLoaded(
    (signal) => load({ ...given, limit: PAGE, offset }, signal),
    [JSON.stringify(given), offset],
  )
  return (
    <section aria-labelledby="audit">
      <h2 id="audit">{title}</h2>
      <Filters label="Filter the audit">
        <TextFilter label="Resource" name="resource" hint="Id, path, key or domain" />
        <TextFilter label="Actor" name="actor" hint="Credential id or operator" />
        <TextFilter label="Change" name="type" hint="such as ProjectRenamed" />
        {TIMES.map((name) => (
          <label key={name}>
            {name === 'from' ? 'From' : 'Before'}
            <input
              type="datetime-local"
              value={param(name)}
              onChange={({ currentTarget }) => setQuery({ [name]: currentTarget.value, offset: '' })}
            />
          </label>
        ))}
      </Filters>
      <List
        of={facts}
        caption="Changes, the newest first"
        columns={[...COLUMNS, past]}
        idOf={({ position }) => position}
        empty={<Empty command="npx svc audit">No change matches these filters.</Empty>}
      />
    </section>
  )
}
