import type { Page } from '../../../client/index.ts'
import { ask, isGone } from '../../frame/api.ts'
import { session } from '../../frame/session.ts'
import type { Kind, Resource } from './kind.ts'
import type { PageAt } from './sides.ts'

/** What can be seen as it was. */
export const KINDS: Readonly<Record<string, Kind>> = {
  projects: {
    text: 'Projects',
    operation: 'GET /v1/projects',
    id: 'project_id',
    names: ['name'],
    narrower: 'project',
  },
  builds: {
    text: 'Builds',
    operation: 'GET /v1/builds',
    id: 'build_id',
    names: ['project_name'],
    narrower: 'project_builds',
  },
  project_builds: {
    text: 'Builds of one project',
    operation: 'GET /v1/projects/{id}/builds',
    id: 'build_id',
    names: [],
    chosen: 'Id or name of the project',
  },
  context: {
    text: 'Names of secrets',
    operation: 'GET /v1/projects/{id}/context',
    id: 'key',
    names: ['key'],
    chosen: 'Id or name of the project',
  },
  service_keys: {
    text: 'Service keys',
    operation: 'GET /v1/service-keys',
    id: 'service_key_id',
    names: ['name'],
    narrower: 'service_key',
  },
  sessions: { text: 'Sessions', operation: 'GET /v1/sessions', id: 'session_id', names: [] },
  api_keys: {
    text: 'API keys (operator)',
    operation: 'GET /operator/envs/{id}/api-keys',
    id: 'api_key_id',
    names: ['name'],
    isOperators: true,
  },
  project: one('One project', 'GET /v1/projects/{id}', 'project_id', 'Id or name of the project'),
  run: one('One run', 'GET /v1/runs/{id}', 'run_id', 'Id of the run'),
  file: one('One file', 'GET /v1/files/{id}', 'file_id', 'Id of the file'),
  domain: one('One domain', 'GET /v1/domains/{id}', 'domain_id', 'Id of the domain'),
  service_key: one('One service key', 'GET /v1/service-keys/{id}', 'service_key_id', 'Id of the service key'),
}

function one(text: string, operation: string, id: string, chosen: string): Kind {
  return { text, operation, id, names: ['name', 'path', 'domain', 'fn'], chosen, isOne: true }
}

/** What is asked for: a resource or its owner by id, and the time; an empty one is the present. */
export interface Asked {
  readonly id: string
  readonly as_of: string
  readonly signal: AbortSignal
}

/** Reads a page of the resources of a kind at a time. A single resource that did not exist is absent. */
export const pageAt =
  ({ operation, isOne, isOperators }: Kind, { id, as_of, signal }: Asked): PageAt =>
  async (page) => {
    const path = { id: isOperators ? (session.value?.env_id ?? '') : id }
    const query = { ...(as_of && { as_of }) }
    if (!isOne) return ask<Page<Resource>>(operation, { path, query: { ...query, ...page }, signal })
    const one = await ask<Resource>(operation, { path, query, signal }).catch((error: unknown) => {
      if (isGone(error)) return undefined
      throw error
    })
    const data = one ? [one] : []
    return { data, pagination: { total: data.length, limit: 1, offset: 0, has_more: false } }
  }
