import type { Api, Answer } from '../support/http.ts'
import { deploy, type Webhook } from '../support/build.ts'

export const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

const hookOf = (name: string, code: string, more = '') =>
  `export const ${name} = fn({ webhook: { service: 's.1', path: '/${name}' }${more} }, ${code})\n`

/** Endpoints of every kind, for a project `hooks`. */
export const HOOKS = `
import { setTimeout } from 'node:timers/promises'
import { fn, currentRun } from 'svc'
${METHODS.map((method) => `export const on${method} = fn({ webhook: { service: 'methods', path: '/all', method: '${method}' } }, (request) => request)`).join('\n')}
${hookOf('echo', '(request) => request')}
${hookOf('bytes', `(request) => ({ raw: request.bodyRaw, same: request['body-bytes'] === request.bodyBytes, bytes: request.bodyBytes && Buffer.from(request.bodyBytes).toString('hex') })`)}
${hookOf('measure', `(request) => { const { body, bodyRaw } = request; let depth = 0; for (let at = body; Array.isArray(at); at = at[0]) depth++; return { raw: bodyRaw?.length, type: typeof body, depth, count: body?.length ?? Object.keys(body ?? {}).length } }`)}
${hookOf('reply', '({ body }) => body')}
${hookOf('nothing', '() => {}')}
${hookOf('throws', `() => { throw new Error('out of order') }`, ', retry: 3')}
${hookOf('slow', '() => setTimeout(10_000, null, { signal: currentRun().signal })', ', timeout: 300')}
${hookOf('long', '() => setTimeout(10_000, null, { signal: currentRun().signal })')}
export const deep = fn({ webhook: { service: 's.1', path: '/a/b/c' } }, ({ url }) => url)
`

/** Their URLs by method, service and path, such as `POST s.1/echo`. */
export const hookUrls = async (api: Api): Promise<Map<string, string>> => {
  const { data } = await api.page<Webhook>('/projects/hooks/webhooks?limit=100')
  return new Map(data.map(({ method, service, path, url }) => [`${method} ${service}${path}`, url]))
}

export const deployHooks = async (api: Api): Promise<Map<string, string>> => {
  await deploy(api, 'hooks', { 'h.js': HOOKS })
  return hookUrls(api)
}

/** Webhooks have no credential: the token is in the URL. */
export const callHook = async (
  url: string,
  { method = 'POST', ...init }: RequestInit = {},
): Promise<Answer> => {
  const response = await fetch(url, { method, ...init })
  const text = await response.text()
  return {
    status: response.status,
    headers: response.headers,
    text,
    json: text === '' ? undefined : JSON.parse(text),
  }
}
