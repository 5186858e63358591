import Type from 'typebox'
import { AppError } from '../../errors.ts'
import { presentRun } from '../present/run.ts'
import { requestRun } from '../../commands/requestRun.ts'
import { item, route } from '../route.ts'
import { Run } from '../schemas.ts'
import { projectOf, projectPaths } from './projects.ts'

export const evalRoutes = [
  route({
    method: 'POST',
    path: '/v1/projects/:project/eval',
    summary: 'Evaluate code beside the live or deployed build',
    description:
      'Waits for the end of the run. With `repl_id`, declarations are kept between evaluations of that id.',
    tag: 'Runs',
    needs: { type: 'build', action: 'execute', path: projectPaths },
    body: Type.Object({
      code: Type.String({ minLength: 1, maxLength: 256 << 10 }),
      repl_id: Type.Optional(Type.String({ pattern: '^[A-Za-z0-9._-]{1,64}$' })),
    }),
    example: { code: "await run('greetings/add', 1, 2)" },
    errors: ['quota_exceeded'],
    reply: { kind: 'item', status: 201, schema: Run },
    handle: async (ask) => {
      const {
        body,
        credential,
        deps,
        request_id,
        caller: { newId },
      } = ask
      const { env_id } = credential
      await deps.views.settled('builds')
      const project = projectOf(ask)
      const build = project.live ?? project.deployed
      if (!build)
        throw new AppError('not_found', 'The project has no live or deployed build to evaluate beside')
      await deps.quotas.checkRun(env_id)
      const { code, repl_id } = body
      const { run_id } = await requestRun(
        deps,
        {
          run_type: repl_id === undefined ? 'eval' : 'repl',
          build_id: build.build_id,
          project_id: project.project_id,
          project_name: project.name,
          target: { code, ...(repl_id !== undefined && { repl_id }) },
          timeout: deps.webhookTimeoutMs,
        },
        { kind: 'args', value: [] },
        { env_id, request_id, actor: credential.id, timeoutMs: deps.webhookTimeoutMs + 10_000, newId },
      )
      await deps.views.settled('runs')
      const run = await deps.views.runs.get(run_id)
      if (!run) throw new AppError('unavailable', 'No worker took the evaluation in time')
      return item(await presentRun(run, deps.payloads), 201)
    },
  }),
]
