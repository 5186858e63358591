import Type from 'typebox'
import { derivedId } from '../../ids.ts'
import { demandReadable } from '../../commands/projects/demandReadable.ts'
import type { FunctionSpec } from '../../events/project.ts'
import type { DirectoryProject } from '../../projections/directoryProject.ts'
import type { ApiDeps } from '../deps.ts'
import { presentFunction } from '../present/function.ts'
import { type Ask, list, type Reply, route } from '../route.ts'
import { pageQuery, PageQuery } from '../paging.ts'
import { EventHandler, ProjectFunction, Webhook } from '../schemas.ts'
import { byProject, projectOf } from './projects.ts'

const tag = 'Functions'
const needs = { type: 'build', action: 'read', ...byProject }

interface Shown {
  /** Whether a function is in the list. */
  readonly has?: (fn: FunctionSpec) => boolean
  /** Converts a function. It may compute ids and tokens, so only those of the page are converted. */
  readonly of: (fn: FunctionSpec, place: { project: DirectoryProject; build_id: string }) => unknown
}

/** Replies with a page of the functions of the project's deployed or live build. */
const functionsAs = async (
  ask: Ask<{ project: string }, { limit: number; offset: number; build?: 'deployed' | 'live' }>,
  { has = () => true, of }: Shown,
): Promise<Reply> => {
  await ask.deps.views.settled('builds')
  const project = projectOf(ask)
  const { limit, offset, build = 'deployed' } = ask.query
  demandReadable(project, project[build])
  const { build_id = '', functions = [] } = project[build] ?? {}
  const listed = functions.filter(has)
  const page = listed.slice(offset, offset + limit).map((fn) => of(fn, { project, build_id }))
  return list(page, listed.length, ask.query)
}

/** The URL of a webhook of the environment (SPEC.md, Webhook routes). */
export const webhookUrl = (
  { publicUrl, views, keyring }: Pick<ApiDeps, 'publicUrl' | 'views' | 'keyring'>,
  env_id: string,
  webhook: { method: string; service: string; path: string },
): string => {
  const env = views.directory.env(env_id)
  return `${publicUrl()}/webhook/${env?.org_slug}/${env?.name}/${webhook.service}${webhook.path}/${keyring.webhookToken(env_id, webhook)}`
}

export const functionRoutes = [
  route({
    method: 'GET',
    path: '/v1/projects/:project/functions',
    operationId: 'listProjectFunctions',
    summary: 'List the functions of the deployed or live build',
    description: 'The functions of the build with the triggers that start them while it is deployed.',
    tag,
    needs,
    query: pageQuery({
      build: Type.Union([Type.Literal('deployed'), Type.Literal('live')], {
        default: 'deployed',
        description: '`live`: the newest development build, which evaluated code runs beside',
      }),
    }),
    reply: { kind: 'list', schema: ProjectFunction },
    handle: (ask) => functionsAs(ask, { of: (fn, { build_id }) => ({ build_id, ...presentFunction(fn) }) }),
  }),

  route({
    method: 'GET',
    path: '/v1/projects/:project/event-handlers',
    operationId: 'listProjectEventHandlers',
    summary: 'List the event handlers of the deployed build',
    tag,
    needs,
    query: PageQuery,
    reply: { kind: 'list', schema: EventHandler },
    handle: (ask) =>
      functionsAs(ask, {
        has: ({ on_event }) => on_event !== undefined,
        of: ({ on_event, ns, var: name }, { project, build_id }) => ({
          event_handler_id: derivedId('handler', project.project_id, ns, name),
          build_id,
          event_type: on_event,
          ns,
          var: name,
        }),
      }),
  }),

  route({
    method: 'GET',
    path: '/v1/projects/:project/webhooks',
    operationId: 'listProjectWebhooks',
    summary: 'List the webhook endpoints of the deployed build',
    description: 'Each `url` contains the secret token of its endpoint. Redeploys do not change it.',
    tag,
    needs,
    query: PageQuery,
    reply: { kind: 'list', schema: Webhook },
    handle: (ask) =>
      functionsAs(ask, {
        has: ({ webhook }) => webhook !== undefined,
        of: (fn, { project, build_id }) => {
          if (!fn.webhook) return null
          const { service, path, method, name, description, auth, verify, cors } = fn.webhook
          const url = webhookUrl(ask.deps, project.env_id, fn.webhook)
          const webhook_id = derivedId('webhook', project.env_id, method, service, path)
          return {
            webhook_id,
            build_id,
            service,
            path,
            method,
            name,
            description,
            auth,
            ...(verify && { verify }),
            ...(cors && { cors }),
            ns: fn.ns,
            var: fn.var,
            url,
          }
        },
      }),
  }),
]
