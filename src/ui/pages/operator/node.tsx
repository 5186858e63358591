import { ask } from '../../frame/api.ts'
import { useLoaded } from '../../frame/load.ts'
import { useRepeat } from '../../frame/repeat.ts'
import { Button } from '../../parts/button.tsx'
import { Facts } from '../../parts/facts.tsx'
import { Shown } from '../../parts/shown.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { durationText } from '../../parts/durationText.ts'
import { Time } from '../../parts/texts.tsx'
import { Nodes } from './nodes.tsx'

interface Engine {
  readonly engine: string
  readonly kind: string
  readonly answers: boolean
  readonly since: string | null
}

interface Status {
  readonly ready: boolean
  readonly reason: string | null
  readonly version: string
  readonly start_time: string
  readonly node_id: string
  readonly node_version: string
  readonly roles: readonly string[]
  readonly sandbox: { readonly tier: string; readonly reason: string } | null
  readonly engines: readonly Engine[]
  readonly oldest_untaken_event_ms: number | null
}

interface Check {
  readonly name: string
  readonly state: 'ok' | 'warning' | 'failed'
  readonly detail: string
  readonly fix: string | null
}

const LOOK_MS = 5000

/** All nodes, then the one that answers, its engines, and what its checks found. */
export const Node = () => {
  const status = useLoaded((signal) => ask<Status>('GET /operator/status', { signal }), [])
  useRepeat(status.reload, LOOK_MS)
  return (
    <>
      <Nodes own={status.data?.node_id} />
      <section aria-labelledby="node">
        <h2 id="node">The node that answers</h2>
        <Shown of={status}>
          {(data) => (
            <>
              <FactsOf of={data} />
              <Table caption="Engines" columns={ENGINES} rows={data.engines} idOf={({ engine }) => engine} />
            </>
          )}
        </Shown>
        <Checks />
      </section>
    </>
  )
}

const ENGINES: readonly Column<Engine>[] = [
  { name: 'Engine', cell: ({ engine }) => engine },
  { name: 'Kind', cell: ({ kind }) => kind },
  {
    name: 'State',
    cell: ({ answers }) =>
      answers ? <span class="status good">Answers</span> : <span class="status bad">Does not answer</span>,
  },
  { name: 'Since', cell: ({ since }) => <Time at={since} /> },
]

const FactsOf = ({ of }: { readonly of: Status }) => (
  <Facts
    of={{
      State: of.ready ? (
        <span class="status good">Ready</span>
      ) : (
        <span class="status bad">{of.reason ?? 'Not ready'}</span>
      ),
      Roles: of.roles.join(', '),
      Sandbox: of.sandbox ? `${of.sandbox.tier}: ${of.sandbox.reason}` : 'No runs on this node',
      'Oldest waiting event':
        of.oldest_untaken_event_ms === null
          ? 'Not known on this node'
          : durationText(of.oldest_untaken_event_ms),
      Version: of.version,
      Node: of.node_version,
      'Node id': <code>{of.node_id}</code>,
      Started: <Time at={of.start_time} />,
    }}
  />
)

const STATES = { ok: ['good', 'OK'], warning: ['warn', 'Warning'], failed: ['bad', 'Failed'] } as const

const CHECKS: readonly Column<Check>[] = [
  { name: 'Check', cell: ({ name }) => name },
  {
    name: 'State',
    cell: ({ state }) => <span class={`status ${STATES[state][0]}`}>{STATES[state][1]}</span>,
  },
  { name: 'Detail', cell: ({ detail }) => detail },
  { name: 'Fix', cell: ({ fix }) => fix ?? '' },
]

const Checks = () => {
  const checks = useLoaded((signal) => ask<readonly Check[]>('GET /operator/checks', { signal }), [])
  return (
    <section aria-labelledby="checks">
      <div class="heading">
        <h3 id="checks">Checks</h3>
        <Button isOff={checks.isLoading} onClick={checks.reload}>
          {checks.isLoading ? 'Checking…' : 'Check again'}
        </Button>
      </div>
      <Shown of={checks} loading={null}>
        {(data) => <Table caption="Checks" columns={CHECKS} rows={data} idOf={({ name }) => name} />}
      </Shown>
    </section>
  )
}
