import { ask } from '../../frame/api.ts'
import { useLoaded } from '../../frame/load.ts'
import { useRepeat } from '../../frame/repeat.ts'
import { List } from '../../parts/list.tsx'
import type { Column } from '../../parts/table.tsx'
import { Empty } from '../../parts/texts.tsx'

interface LivingNode {
  readonly node_id: string
  readonly host: string
  readonly roles: readonly string[]
}

const LOOK_MS = 5000

/** All living nodes with their roles. `own` is the id of the one that answers. */
export const Nodes = ({ own }: { readonly own: string | undefined }) => {
  const nodes = useLoaded((signal) => ask<readonly LivingNode[]>('GET /operator/nodes', { signal }), [])
  useRepeat(nodes.reload, LOOK_MS)
  const columns: readonly Column<LivingNode>[] = [
    {
      name: 'Node',
      cell: ({ node_id }) => (
        <>
          <code>{node_id}</code> {node_id === own && <strong>this one answers</strong>}
        </>
      ),
    },
    { name: 'Machine', cell: ({ host }) => host || 'Not known' },
    { name: 'Roles', cell: ({ roles }) => roles.join(', ') || 'Not known' },
  ]
  return (
    <section aria-labelledby="nodes">
      <h2 id="nodes">Nodes</h2>
      <List
        of={{ ...nodes, data: nodes.data && { data: nodes.data } }}
        caption="Nodes"
        columns={columns}
        idOf={({ node_id }) => node_id}
        empty={<Empty>No node has announced itself yet.</Empty>}
      />
    </section>
  )
}
