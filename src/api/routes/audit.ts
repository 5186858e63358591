import Type from 'typebox'
import { type AuditQuery, findAudited } from '../../commands/audit/findAudited.ts'
import { replayStream } from '../../commands/audit/replayStream.ts'
import { AUDITED } from '../../events/audited.ts'
import { holding } from '../../loops/byteBudget.ts'
import type { AuditDoc } from '../../projections/audit.ts'
import type { ApiDeps } from '../deps.ts'
import { DOCUMENT_BYTES } from '../http/memory.ts'
import { pageQuery } from '../paging.ts'
import { presentReplayed, presentToOperator, presentToTenant } from '../present/audit.ts'
import { list, operatorRoute, type Reply, route } from '../route.ts'
import { AuditedFact, AuditedFactOfInstallation, ReplayedFact } from '../schemas.ts'

const filters = {
  actor: Type.Optional(
    Type.String({
      minLength: 1,
      description:
        'Only facts of this actor: the id of a credential or run, `operator`, or the name of a task of the service',
    }),
  ),
  resource: Type.Optional(
    Type.String({
      minLength: 1,
      description: 'Only facts that contain this id, path of a file, key of a context variable or domain',
    }),
  ),
  type: Type.Optional(
    Type.Union(
      AUDITED.map((type) => Type.Literal(type)),
      { description: 'Only facts of this type' },
    ),
  ),
  from: Type.Optional(
    Type.String({
      description: 'Only facts stored at this time or later',
      documented: { format: 'date-time' },
    }),
  ),
  to: Type.Optional(
    Type.String({ description: 'Only facts stored before this time', documented: { format: 'date-time' } }),
  ),
  after: Type.Optional(
    Type.String({
      minLength: 1,
      description:
        'Only facts after this position, the oldest first; `start` lists all facts from the oldest on',
    }),
  ),
}

const description =
  'The changes of configuration, files and credentials, each with its actor, and evaluated code, replayed and cancelled ' +
  'runs. Other runs and events have lists of their own. Secrets and content are `[redacted]`. `request_id` is the request ' +
  'that made the change, or that began the chain of the run that made it; null if the service acted on its own.'

const pageOf = (
  deps: ApiDeps,
  owner: string,
  query: AuditQuery,
  present: (doc: AuditDoc) => unknown,
): Promise<Reply> =>
  holding(deps.memory.values, { owner, bytes: query.limit * DOCUMENT_BYTES }, async () => {
    const { items, total } = await findAudited(deps, query)
    return list(items.map(present), total, query)
  })

export const auditRoutes = [
  route({
    method: 'GET',
    path: '/v1/audit',
    operationId: 'listAudit',
    summary: 'List who changed what in the environment',
    description,
    tag: 'Audit',
    needs: { type: 'env', action: 'read' },
    query: pageQuery(filters),
    reply: { kind: 'list', schema: AuditedFact },
    handle: ({ query, deps, credential: { env_id } }) =>
      pageOf(deps, deps.memory.ownerOf(env_id), { ...query, env_id }, presentToTenant),
  }),

  operatorRoute({
    method: 'GET',
    path: '/operator/audit',
    operationId: 'listInstallationAudit',
    summary: 'List who changed what in the installation',
    description: `${description} Includes facts of organizations, of the installation and of deleted environments.`,
    tag: 'Operator',
    query: pageQuery({
      env_id: Type.Optional(Type.String({ minLength: 1, description: 'Only facts of this environment' })),
      ...filters,
    }),
    reply: { kind: 'list', schema: AuditedFactOfInstallation },
    handle: ({ query, deps }) => pageOf(deps, 'operator', query, presentToOperator),
  }),

  operatorRoute({
    method: 'GET',
    path: '/operator/audit/replay',
    operationId: 'replayAudit',
    summary: 'Fold a stream of the log again, fact by fact',
    description:
      'Lists the facts of a stream or about a resource, the oldest first, each with the state of the stream after it and ' +
      'what the fact changed. The facts are redacted before they are folded. A request folds at most 100,000 facts.',
    tag: 'Operator',
    query: pageQuery({
      stream: Type.Optional(
        Type.String({ minLength: 1, description: 'Name of a stream of the event log, such as `project-ID`' }),
      ),
      resource: Type.Optional(
        Type.String({
          minLength: 1,
          description:
            'An id, path of a file, key of a context variable or domain in the audit, or the id of a run, event or stream',
        }),
      ),
      until: Type.Optional(
        Type.String({ minLength: 1, description: 'The last position or time of the replay' }),
      ),
    }),
    errors: ['bad_request', 'not_found'],
    reply: { kind: 'list', schema: ReplayedFact },
    handle: ({ query, deps }) =>
      holding(deps.memory.values, { owner: 'operator', bytes: query.limit * DOCUMENT_BYTES }, async () => {
        const { items, total } = await replayStream(deps, query)
        return list(items.map(presentReplayed), total, query)
      }),
  }),
]
