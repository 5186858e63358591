import { useRef } from 'preact/hooks'
import { ask } from '../../frame/api.ts'
import { useLoaded } from '../../frame/load.ts'
import { useRepeat } from '../../frame/repeat.ts'
import { Action } from '../../parts/action.tsx'
import { Checkbox } from '../../parts/fields.tsx'
import { List } from '../../parts/list.tsx'
import type { Column } from '../../parts/table.tsx'
import { Empty } from '../../parts/texts.tsx'
import { useFields } from '../../parts/useFields.ts'
import type { ReadModel } from './readModel.ts'
import { Progress } from './progress.tsx'

/** The pause between two looks: documents are counted for each. */
const LOOK_MS = 5000
const REBUILDING_MS = 500

const isBusy = ({ state, rebuild }: ReadModel): boolean =>
  state !== 'serving' || (rebuild !== null && rebuild.ended_at === null)

/** The read models with their lag and their rebuilds. */
export const ReadModels = () => {
  const models = useLoaded((signal) => ask<readonly ReadModel[]>('GET /operator/projections', { signal }), [])
  const rows = models.data ?? []
  useRepeat(models.reload, rows.some(isBusy) ? REBUILDING_MS : LOOK_MS)
  const most = useRef(new Map<string, number>())
  for (const { name, rebuild } of rows)
    if (rebuild?.behind) most.current.set(name, Math.max(rebuild.behind, most.current.get(name) ?? 0))
  const columns: readonly Column<ReadModel>[] = [
    { name: 'Read model', cell: ({ name, version }) => `${name}, version ${version}` },
    {
      name: 'State',
      cell: ({ state }) => <span class={`status ${state === 'serving' ? 'good' : 'running'}`}>{state}</span>,
    },
    {
      name: 'Events behind',
      isNumber: true,
      cell: ({ behind }) => (behind === null ? 'Not known' : behind.toLocaleString('en')),
    },
    { name: 'Documents', isNumber: true, cell: ({ documents }) => documents.toLocaleString('en') },
    {
      name: 'Rebuild',
      cell: ({ name, rebuild }) =>
        rebuild && <Progress name={name} of={rebuild} most={most.current.get(name) ?? 0} />,
    },
    {
      name: 'Actions',
      cell: ({ name }) => <Rebuild names={[name]} label="Rebuild" onDone={models.reload} />,
    },
  ]
  return (
    <section aria-labelledby="read-models">
      <div class="heading">
        <h2 id="read-models">Read models</h2>
        <Rebuild names={[]} label="Rebuild all" onDone={models.reload} />
      </div>
      <List
        of={{ ...models, data: models.data && { data: rows } }}
        caption="Read models"
        columns={columns}
        idOf={({ name }) => name}
        empty={<Empty>There is no read model.</Empty>}
      />
    </section>
  )
}

const Rebuild = ({
  names,
  label,
  onDone,
}: {
  readonly names: readonly string[]
  readonly label: string
  readonly onDone: () => void
}) => {
  const { verify, begin } = useFields({ verify: false })
  const what = names.join(', ') || 'all read models'
  return (
    <Action
      label={label}
      does={`Builds new documents of ${what} from the log, beside those that are served. Requests never see a gap.`}
      onOpen={begin}
      run={async (idempotencyKey) => {
        await ask('POST /operator/projections/rebuild', {
          body: { names, verify: verify.value },
          idempotencyKey,
        })
        onDone()
        return `The rebuild of ${what} was requested.`
      }}
    >
      <Checkbox
        label="Compare all documents first, and report those that differ"
        isChecked={verify.value}
        onChange={(isChecked) => (verify.value = isChecked)}
      />
    </Action>
  )
}
