import { type Page, ServiceError } from '../../../client/index.ts'
import { ask } from '../../frame/api.ts'
import { readAll } from '../../frame/readAll.ts'
import { session } from '../../frame/session.ts'

/** A resource at a moment, as the API returns it. */
export type Resource = Readonly<Record<string, unknown>>

interface Kind {
  readonly text: string
  /** The operation; its last parameter in braces is the chosen id. */
  readonly operation: string
  /** The field that identifies a resource in a list. */
  readonly id: string
  /** The fields that name it, for people. */
  readonly names: readonly string[]
  /** The label of what must be chosen, such as a project. */
  readonly chosen?: string
  /** The reply is one resource. */
  readonly isOne?: true
  readonly isOperators?: true
  /** The kind that shows one resource of this list. */
  readonly single?: string
}

/** What can be seen as it was. */
export const KINDS: Readonly<Record<string, Kind>> = {
  projects: {
    text: 'Projects',
    operation: 'GET /v1/projects',
    id: 'project_id',
    names: ['name'],
    single: 'project',
  },
  builds: {
    text: 'Builds',
    operation: 'GET /v1/builds',
    id: 'build_id',
    names: ['project_name', 'hash'],
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
    single: 'service_key',
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

/** The longest list that is compared: the service returns no larger past state, and a list that is cut has false differences. */
export const MOST = 1000

/** The resources of a kind at a time; an empty one is the present. A resource that did not exist is absent. */
export const resourcesAt = async (
  { operation, isOne, isOperators }: Kind,
  { id, as_of, signal }: { readonly id: string; readonly as_of: string; readonly signal: AbortSignal },
): Promise<readonly Resource[]> => {
  const path = { id: isOperators ? (session.value?.env_id ?? '') : id }
  const query = { ...(as_of && { as_of }) }
  if (!isOne)
    return readAll(
      (page) => ask<Page<Resource>>(operation, { path, query: { ...query, ...page }, signal }),
      MOST,
    )
  try {
    return [await ask<Resource>(operation, { path, query, signal })]
  } catch (error) {
    if (isMissing(error)) return []
    throw error
  }
}

/** Whether the service has no such resource now. */
export const isMissing = (error: unknown): boolean => error instanceof ServiceError && error.status === 404
