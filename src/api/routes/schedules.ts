import type { Static } from 'typebox'
import { runSchedule } from '../../commands/schedules/runSchedule.ts'
import { knownSchedulesOf, type Schedule as Scheduled, stateOf } from '../../commands/schedules/schedules.ts'
import { switchSchedule } from '../../commands/schedules/switchSchedule.ts'
import { PageQuery } from '../paging.ts'
import { type Ask, item, list, type Reply, route } from '../route.ts'
import { RequestedRun, Schedule } from '../schemas.ts'
import { byProject, projectOf } from './projects.ts'

const tag = 'Functions'
const needs = { type: 'build', action: 'execute', ...byProject }

const present = async (
  { deps: { views } }: Pick<Ask, 'deps'>,
  scheduled: Scheduled,
): Promise<Static<typeof Schedule>> => {
  const { schedule_id, build, fn } = scheduled
  const { build_id } = build
  return {
    schedule_id,
    build_id,
    ...fn.schedule,
    ns: fn.ns,
    var: fn.var,
    ...(await stateOf(views, scheduled)),
  }
}

const switchTo =
  (paused: boolean) =>
  async (ask: Ask<{ project: string; schedule_id: string }>): Promise<Reply> =>
    item(await present(ask, await switchSchedule(ask.deps, { ...ask.params, paused }, ask.caller)))

export const scheduleRoutes = [
  route({
    method: 'GET',
    path: '/v1/projects/:project/schedules',
    operationId: 'listProjectSchedules',
    summary: 'List the schedules of the deployed build',
    tag,
    needs: { ...needs, action: 'read' },
    query: PageQuery,
    reply: { kind: 'list', schema: Schedule },
    handle: async (ask) => {
      const { limit, offset } = ask.query
      await ask.deps.views.settled('builds')
      const all = knownSchedulesOf(projectOf(ask))
      const shown = []
      for (const one of all.slice(offset, offset + limit)) shown.push(await present(ask, one)) // one run in memory at a time
      return list(shown, all.length, ask.query)
    },
  }),

  route({
    method: 'POST',
    path: '/v1/projects/:project/schedules/:schedule_id/pause',
    operationId: 'pauseSchedule',
    summary: 'Pause a schedule',
    description:
      'No tick starts the function until the schedule is resumed, also after deployments. Runs in progress and their ' +
      'retries continue. A schedule that is paused remains as it is.',
    tag,
    needs,
    reply: { kind: 'item', schema: Schedule },
    handle: switchTo(true),
  }),

  route({
    method: 'POST',
    path: '/v1/projects/:project/schedules/:schedule_id/resume',
    operationId: 'resumeSchedule',
    summary: 'Resume a paused schedule',
    description: 'The next tick starts the function. Ticks of the pause are not caught up.',
    tag,
    needs,
    reply: { kind: 'item', schema: Schedule },
    handle: switchTo(false),
  }),

  route({
    method: 'POST',
    path: '/v1/projects/:project/schedules/:schedule_id/run',
    operationId: 'runSchedule',
    summary: 'Start the function of a schedule now',
    description:
      'The function receives the event of a tick, with the present time as `scheduled_time`. A paused schedule can be started too.',
    tag,
    needs,
    errors: ['quota_exceeded'],
    reply: { kind: 'item', status: 201, schema: RequestedRun },
    handle: async ({ deps, params, caller }) => item(await runSchedule(deps, params, caller), 201),
  }),
]
