import type { Context } from 'koa'
import type { AppError, ErrorCode } from '../../errors.ts'

type Params = Readonly<Record<string, string>>

const page = (path: string, query: Params = {}): string => {
  const text = new URLSearchParams(query).toString()
  return `/ui${path}${text && `?${text}`}`
}
const part = (text: string | undefined): string => encodeURIComponent(text ?? '')

/** The pages of the dashboard by the beginning of a path that names a resource; the first one that fits counts. */
const PAGES: readonly (readonly [path: string, pageOf: (params: Params) => string])[] = [
  ['/v1/runs/:run_id', ({ run_id }) => page(`/runs/${part(run_id)}`)],
  ['/v1/streams/:stream_id', ({ stream_id }) => page(`/streams/${part(stream_id)}`)],
  ['/v1/events/:event_id', ({ event_id = '' }) => page('/events', { event: event_id })],
  ['/v1/projects/:project/builds', ({ project = '' }) => page('/builds', { project })],
  ['/v1/projects/:project/context', ({ project = '' }) => page('/secrets', { project })],
  ['/v1/projects/:project', ({ project = '' }) => page('/functions', { project })],
  ['/v1/functions/:project', ({ project = '' }) => page('/functions', { project })],
  ['/v1/files/:file_id', () => page('/files')],
  ['/v1/files/upload/', ({ path: prefix = '' }) => page('/files', { prefix })],
  ['/v1/files/uploads/', () => page('/files')],
  ['/v1/domains/:domain_id', () => page('/domains')],
  ['/v1/sessions/:session_id', () => page('/keys')],
  ['/v1/service-keys/:service_key_id', () => page('/keys')],
  ['/operator/orgs/:org', ({ org = '' }) => page('/operator', { section: 'organizations', org })],
  ['/operator/envs/:env_id', () => page('/operator', { section: 'organizations' })],
  ['/operator/api-keys/:api_key_id', () => page('/operator', { section: 'organizations' })],
  ['/operator/events/:event_id', () => page('/operator', { section: 'defects' })],
]

/** The pages of errors that are about the credential or the plan. */
const BY_CODE: Partial<Record<ErrorCode, string>> = {
  forbidden: page('/keys'),
  permission_escalation: page('/keys'),
  session_limit_exceeded: page('/keys'),
  quota_exceeded: page(''),
  plan_required: page(''),
  domain_limit_reached: page('/domains'),
}

/** A longer address names nothing that exists, and the header of a reply must not grow with the request. */
const MAX_LENGTH = 2048

/** Whether a page may help with an error: not if the reader has no valid credential, must wait, or can do nothing. */
export const hasHelp = ({ code, status }: Pick<AppError, 'code' | 'status'>): boolean =>
  status < 500 && code !== 'unauthorized' && code !== 'rate_limit_exceeded'

/**
 * The `Link` header of an error: the page of the dashboard about the resource of the request. It follows from the request alone,
 * so it does not reveal whether the resource exists (I7).
 */
export const helpHeaders = (
  error: Pick<AppError, 'code' | 'status'>,
  { state: { route = '' }, params }: Pick<Context, 'state'> & { readonly params?: unknown },
): Record<string, string> => {
  if (!hasHelp(error) || !/^\/(?:v1|operator)\//.test(route)) return {}
  const named = PAGES.find(([path]) => route.startsWith(path))?.[1]((params ?? {}) as Params)
  const found = BY_CODE[error.code] ?? named
  return found === undefined || found.length > MAX_LENGTH
    ? {}
    : { Link: `<${found}>; rel="help"; type="text/html"` }
}
