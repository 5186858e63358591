import Type from 'typebox'
import { evaluate } from '../../commands/runs/evaluate.ts'
import { presentRun } from '../present/run.ts'
import { item, route } from '../route.ts'
import { Run } from '../schemas.ts'
import { REPL_PATTERN } from '../schemas/patterns.ts'
import { projectPaths } from './projects.ts'

export const evalRoutes = [
  route({
    method: 'POST',
    path: '/v1/projects/:project/eval',
    operationId: 'evaluate',
    summary: 'Evaluate code with the live or deployed build',
    description:
      'Replies after the run has ended. The code may do what the credential may do: `context` needs `context:read`, `send` ' +
      '`event:create`, `call` and `run` `build:execute` on the project of the function, `files` the permissions of files. ' +
      'Evaluations of one credential with the same `repl_id` share their declarations.',
    tag: 'Runs',
    needs: { type: 'build', action: 'execute', path: projectPaths },
    body: Type.Object({
      code: Type.String({ minLength: 1, maxLength: 256 << 10 }),
      repl_id: Type.Optional(Type.String({ pattern: REPL_PATTERN })),
    }),
    example: { code: "await run('greetings/add', 1, 2)" },
    errors: ['quota_exceeded'],
    reply: { kind: 'item', status: 201, schema: Run },
    handle: async ({ params: { project }, body, deps, caller, credential }) => {
      const { code, repl_id } = body
      const input = { project, code, repl_id, timeoutMs: deps.webhookTimeoutMs, credential }
      return item(presentRun(await evaluate(deps, input, caller), deps.payloads), 201)
    },
  }),
]
