import type { RunType } from '../../../client/index.ts'
import { linkTo, param, query, setQuery } from '../../frame/router.ts'
import { may } from '../../frame/session.ts'
import { Choice } from '../../parts/fields.tsx'
import { Filters, isoOfField, TextFilter } from '../../parts/filters.tsx'
import { Failure, STATUS_TEXTS } from '../../parts/texts.tsx'
import { nameOf, useProjects } from '../../parts/projectChoice.tsx'

const TYPES: readonly RunType[] = ['call', 'event', 'schedule', 'run', 'eval', 'repl']
const PERIODS = {
  PT1H: 'Last hour',
  P1D: 'Last day',
  P2D: 'Last 2 days',
  P7D: 'Last 7 days',
  P30D: 'Last 30 days',
}

const NAMES = [
  'status',
  'type',
  'project',
  'fn',
  'text',
  'error_code',
  'time_range',
  'stream',
  'event',
  'chain',
] as const

/** The filters of the URL, as parameters of the list. */
export const runFilters = (): Readonly<Record<string, string>> => {
  const given = NAMES.map((name) => [name, param(name)] as const).filter(([, value]) => value !== '')
  const before = param('before')
  return { ...Object.fromEntries(given), ...(before && { before: isoOfField(before) }) }
}

/** The filters of links from other pages, which have no field: what they name, and its page. */
const SCOPES = [
  ['event', 'Only runs of the event', (id: string) => linkTo('/events', { event: id })],
  ['stream', 'Only runs of the stream', (id: string) => linkTo(`/streams/${id}`)],
  ['chain', 'Only attempts of the run', (id: string) => linkTo(`/runs/${id}`)],
] as const

/** Names the filters that no field shows. Otherwise a list of one run would look like all there is. */
export const Scopes = () => (
  <>
    {SCOPES.filter(([name]) => param(name) !== '').map(([name, text, pageOf]) => (
      <p key={name}>
        {text} <a href={pageOf(param(name))}>{param(name)}</a>{' '}
        <button type="button" class="plain" onClick={() => setQuery({ [name]: '', cursor: '' })}>
          Show others too
        </button>
      </p>
    ))}
  </>
)

/** The filter bar is the URL: each field changes one parameter. */
export const FilterBar = () => (
  <Filters label="Filter runs">
    <TextFilter label="Text" name="text" hint="Function or error message" />
    <ChoiceFilter label="Status" name="status" options={Object.entries(STATUS_TEXTS)} />
    <TextFilter label="Function" name="fn" hint="ns/var" />
    {may('project', 'read') && <ProjectChoice />}
    <ChoiceFilter label="Type" name="type" options={TYPES.map((type) => [type, type])} />
    <TextFilter label="Error code" name="error_code" hint="such as timeout" />
    <ChoiceFilter label="Started" name="time_range" options={Object.entries(PERIODS)} anyText="Any time" />
    <label>
      Before
      <input
        type="datetime-local"
        value={param('before')}
        onChange={({ currentTarget }) => setQuery({ before: currentTarget.value, cursor: '' })}
      />
    </label>
    {query.value.size > 0 && (
      <button
        type="button"
        class="plain"
        onClick={() => setQuery(Object.fromEntries([...query.value.keys()].map((name) => [name, ''])))}
      >
        Clear filters
      </button>
    )}
  </Filters>
)

interface ChoiceProps {
  readonly label: string
  readonly name: string
  readonly options: readonly (readonly [value: string, text: string])[]
  readonly anyText?: string
  /** The chosen option, if the parameter has another name of it. */
  readonly value?: string
}

const ChoiceFilter = ({ label, name, options, anyText = 'Any', value = param(name) }: ChoiceProps) => (
  <Choice
    label={label}
    value={value}
    options={[['', anyText], ...options]}
    onChange={(next) => setQuery({ [name]: next, cursor: '' })}
  />
)

const ProjectChoice = () => {
  const projects = useProjects()
  const names = projects.data?.map(({ name }) => name) ?? []
  const chosen = nameOf(param('project'), projects)
  if (chosen && !names.includes(chosen)) names.push(chosen)
  return (
    <>
      <ChoiceFilter
        label="Project"
        name="project"
        value={chosen}
        options={names.map((name) => [name, name])}
      />
      {projects.error && <Failure error={projects.error} retry={projects.reload} />}
    </>
  )
}
