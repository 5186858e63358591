import type { Route } from '../route.ts'

/** Names that the rule below would get wrong. Clients are generated from them: a name once given stays. */
const names: Readonly<Record<string, string>> = {
  'GET /status': 'getStatus',
  'GET /healthz': 'getHealth',
  'GET /readyz': 'getReadiness',
  'GET /v1/builds': 'listBuilds',
  'GET /v1/projects/:project/builds/deployed': 'getDeployedBuild',
  'GET /v1/projects/:project/builds/live': 'getLiveBuild',
  'GET /v1/projects/:project/builds/:build_id/download': 'downloadBuild',
  'GET /v1/runs/:run_id/logs': 'getRunLogs',
  'GET /v1/runs/stats': 'getRunStats',
  'GET /v1/files/:file_id/download': 'downloadFile',
  'POST /v1/files/uploads': 'beginUpload',
  'GET /v1/files/uploads/:upload_id': 'getUpload',
  'PUT /v1/files/uploads/:upload_id/:part_number': 'uploadPart',
  'POST /v1/files/uploads/:upload_id/complete': 'completeUpload',
  'DELETE /v1/files/uploads/:upload_id': 'cancelUpload',
  'PUT /v1/files/upload/*path': 'uploadFile',
  'GET /v1/env': 'getEnvironment',
  'GET /v1/env/subscribe': 'followEnvironment',
  'GET /v1/streams/:stream_id/subscribe': 'followStream',
  'GET /openapi.json': 'getOpenApiDocument',
  'GET /docs': 'getDocsPage',
  'GET /docs/:asset': 'getDocsAsset',
  'POST /v1/events': 'publishEvent',
  'POST /v1/streams/subscribe-with-event': 'publishAndFollow',
  'POST /v1/projects/:project/builds': 'uploadBuild',
  'POST /v1/projects/:project/builds/:build_id/deploy': 'deployBuild',
  'GET /v1/projects/:project/context': 'listContextVariables',
  'POST /v1/projects/:project/context': 'createContextVariable',
  'PUT /v1/projects/:project/context/:key': 'updateContextVariable',
  'DELETE /v1/projects/:project/context/:key': 'deleteContextVariable',
  'POST /operator/envs/:env_id/rotate-data-key': 'rotateDataKeys',
  'DELETE /operator/envs/:env_id/data-keys': 'eraseSecrets',
  'POST /v1/projects/:project/eval': 'evaluate',
  'DELETE /v1/sessions': 'revokeSessions',
  'DELETE /v1/sessions/:session_id': 'revokeSession',
  'DELETE /v1/service-keys': 'revokeServiceKeys',
  'DELETE /v1/service-keys/:service_key_id': 'revokeServiceKey',
  'POST /operator/orgs': 'createOrg',
  'GET /operator/orgs': 'listOrgs',
  'PATCH /operator/orgs/:org': 'updateOrg',
  'POST /operator/orgs/:org/envs': 'createEnvironment',
  'GET /operator/orgs/:org/envs': 'listEnvironments',
  'POST /operator/envs/:env_id/api-keys': 'createApiKey',
  'GET /operator/envs/:env_id/api-keys': 'listApiKeys',
  'PATCH /operator/api-keys/:api_key_id': 'updateApiKey',
  'DELETE /operator/api-keys/:api_key_id': 'deleteApiKey',
  'POST /v1/domains/:domain_id/verify': 'verifyDomain',
  'GET /webhook/:org/:env/*rest': 'callWebhookByGet',
  'POST /webhook/:org/:env/*rest': 'callWebhookByPost',
  'PUT /webhook/:org/:env/*rest': 'callWebhookByPut',
  'PATCH /webhook/:org/:env/*rest': 'callWebhookByPatch',
  'DELETE /webhook/:org/:env/*rest': 'callWebhookByDelete',
  'GET /webhook/*rest': 'callDomainWebhookByGet',
  'POST /webhook/*rest': 'callDomainWebhookByPost',
  'PUT /webhook/*rest': 'callDomainWebhookByPut',
  'PATCH /webhook/*rest': 'callDomainWebhookByPatch',
  'DELETE /webhook/*rest': 'callDomainWebhookByDelete',
}

const verbs = { GET: 'get', POST: 'create', PUT: 'put', PATCH: 'update', DELETE: 'delete' } as const

/** `GET /v1/projects/:project/builds` is `listProjectBuilds`, `PATCH /v1/projects/:project` is `updateProject`. */
export const operationIdOf = ({ method, path, reply }: Pick<Route, 'method' | 'path' | 'reply'>): string => {
  const given = names[`${method} ${path}`]
  if (given !== undefined) return given
  const segments = path.split('/').filter((segment) => segment !== '' && segment !== 'v1')
  const words = segments.flatMap((segment, index) => {
    if (segment.startsWith(':')) return []
    const isOne = segments[index + 1]?.startsWith(':') || (index === segments.length - 1 && method === 'POST')
    return (isOne ? segment.replace(/s$/, '') : segment).split(/[^A-Za-z0-9]+/)
  })
  const verb = reply.kind === 'list' ? 'list' : verbs[method]
  return verb + words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('')
}
