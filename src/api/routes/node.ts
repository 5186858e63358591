import Type from 'typebox'
import { item, operatorRoute } from '../route.ts'
import { Check, LivingNode, NodeStatus } from '../schemas.ts'

const tag = 'Operator'

export const nodeRoutes = [
  operatorRoute({
    tag,
    method: 'GET',
    path: '/operator/status',
    operationId: 'getNodeStatus',
    summary: 'Get the state of the node that answers',
    description:
      'Each node answers for itself. The reply is the same as in `/status` and `/readyz`, with the engines.',
    reply: { kind: 'item', schema: NodeStatus },
    handle: ({ deps: { about, notReady, readyDetails, sandbox, node } }) => {
      const reason = notReady()
      const details = readyDetails?.() ?? {}
      return item({
        ready: reason === null,
        reason,
        ...about,
        node_id: node.node_id,
        node_version: process.versions.node,
        pid: process.pid,
        roles: node.roles,
        sandbox: sandbox && { tier: sandbox.tier, reason: sandbox.reason },
        engines: node.engines(),
        oldest_untaken_event_ms: details['oldest_untaken_event_ms'] ?? null,
        skipped_facts: details['skipped_facts'] ?? 0,
      })
    },
  }),

  operatorRoute({
    tag,
    method: 'GET',
    path: '/operator/nodes',
    operationId: 'listNodes',
    summary: 'List the nodes with their roles',
    description: 'A node that ended without a stop is listed for some seconds.',
    reply: { kind: 'item', schema: Type.Array(LivingNode) },
    handle: async ({ deps }) => item(await deps.node.nodes()),
  }),

  operatorRoute({
    tag,
    method: 'GET',
    path: '/operator/checks',
    operationId: 'checkNode',
    summary: 'Check the node that answers, and its engines',
    description:
      'Checks the engines and their clocks, the secrets, the disk, the sandbox and the limits of the process. Each problem ' +
      'has a text that explains how to fix it. External engines are asked through new connections.',
    reply: { kind: 'item', schema: Type.Array(Check) },
    handle: async ({ deps }) => item(await deps.node.checks()),
  }),
]
