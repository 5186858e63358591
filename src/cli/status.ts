import { clock } from '../clock.ts'
import { AppError, isAppError } from '../errors.ts'
import { ask } from './ask.ts'
import { command, type Invocation } from './command.ts'
import { duration } from './figures.ts'
import type { Operator } from './operator.ts'
import { type Column, fieldsOf } from './table.ts'

interface Engine {
  readonly engine: string
  readonly kind: string
  readonly answers: boolean
  readonly since: string | null
}

/** The part of the state that needs the operator token. */
interface Node {
  readonly node_id: string
  readonly node_version: string
  readonly pid: number
  readonly roles: readonly string[]
  readonly engines: readonly Engine[]
}

interface About {
  readonly service: string
  readonly version: string
  readonly git_sha: string
  readonly start_time: string
}

/** `/readyz`, with the details of a node that is ready or not. */
interface Ready {
  readonly error?: { readonly message: string }
  readonly sandbox?: { readonly tier: string; readonly reason: string }
  readonly building?: readonly { readonly name: string; readonly percent: number | null }[]
  readonly outages?: readonly { readonly engine: string; readonly since: string }[]
  readonly oldest_untaken_event_ms?: number
  readonly skipped_facts?: number
}

const engineColumns: readonly Column<Engine>[] = [
  { title: 'ENGINE', of: ({ engine }) => engine },
  { title: 'KIND', of: ({ kind }) => kind },
  {
    title: 'STATE',
    of: ({ answers, since }) => (answers ? 'answers' : since ? `away since ${since}` : 'away'),
  },
]

const buildingColumns: readonly Column<NonNullable<Ready['building']>[number]>[] = [
  { title: 'READ MODEL', of: ({ name }) => name },
  { title: 'BUILT', of: ({ percent }) => (percent === null ? null : `${percent} %`), align: 'right' },
]

/** The part that needs the token: null without a token, and while the node does not serve the operator's API. */
const nodeOf = async (operator: Invocation['operator']): Promise<Node | null> => {
  let service: Operator
  try {
    service = operator()
  } catch (error) {
    if (isAppError(error, 'unauthorized')) return null
    throw error
  }
  return service.request<Node>('GET', '/operator/status').catch((error: unknown) => {
    const isAbsent = isAppError(error) && (error.code === 'unavailable' || error.data['status'] === 404)
    if (isAbsent) return null
    throw error
  })
}

export const statusCommand = command({
  name: 'status',
  summary: 'show whether the service is ready, and its engines',
  description:
    'Shows the state of the node at SVC_URL: version, readiness with the reason, sandbox, engines, read models that are being ' +
    'built, and the age of the oldest event that no worker has taken. Ends with 1 if the node is not ready. Without an ' +
    'operator token, the engines are left out.',
  examples: ['svc status', 'svc status --json', 'SVC_URL=http://10.0.0.7:8080 svc status'],
  async run({ operator, table, signal }) {
    const { url, body } = await ask('/status', signal)
    const about = body as unknown as About
    if (about.service !== 'svc')
      throw new AppError('bad_request', `${url} is not svc: /status names another service`)
    const { service: _, ...named } = about
    const answer = await ask('/readyz', signal)
    const { error, ...details } = answer.body as unknown as Ready
    const node = await nodeOf(operator)
    const ready = answer.status === 200
    const reason = ready ? null : (error?.message ?? `/readyz replied ${answer.status}`)
    const { building = [], outages = [], sandbox = null } = details
    const { oldest_untaken_event_ms = null, skipped_facts = 0 } = details
    const json = {
      url,
      ready,
      reason,
      ...named,
      ...node,
      sandbox,
      building,
      outages,
      oldest_untaken_event_ms,
      skipped_facts,
    }
    const age = duration(Math.max(0, clock.now() - Date.parse(about.start_time)))
    const text = fieldsOf({
      service: url,
      state: ready ? 'ready' : `not ready: ${reason}`,
      version: `${about.version} (${about.git_sha})`,
      started: `${about.start_time} (${age} ago)`,
      node: node && `${node.node_id}, process ${node.pid}, Node ${node.node_version}`,
      roles: node?.roles.join(', '),
      sandbox: sandbox && `${sandbox.tier}: ${sandbox.reason}`,
      events:
        oldest_untaken_event_ms === null
          ? null
          : oldest_untaken_event_ms === 0
            ? 'none waits for a worker'
            : `the oldest waits for a worker since ${duration(oldest_untaken_event_ms)}`,
      'skipped facts': String(skipped_facts),
    })
    const tables = [
      ...(node ? [table(node.engines, engineColumns)] : []),
      ...(building.length > 0 ? [table(building, buildingColumns)] : []),
    ]
    return { json, text: [text, ...tables].join('\n'), failed: !ready }
  },
})
