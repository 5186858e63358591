import Type from 'typebox'
import { evaluate } from '../../commands/runs/evaluate.ts'
import type { RunDoc } from '../../projections/runs.ts'
import { presentRun } from '../present/run.ts'
import { type Ask, item, route, unfinished } from '../route.ts'
import { Run } from '../schemas.ts'
import { REPL_PATTERN } from '../schemas/patterns.ts'
import { byProject } from './projects.ts'

/** Evaluates the code of a request. Its handler does not keep the code while it waits. */
const evaluated = ({
  params: { project },
  body,
  deps,
  caller,
  credential,
  forget,
}: Ask<{ project: string }, unknown, { code: string; repl_id?: string }>): Promise<RunDoc> => {
  const { code, repl_id } = body
  const timeoutMs = deps.webhookTimeoutMs
  const onStored = () => forget(body)
  return evaluate(deps, { project, code, repl_id, timeoutMs, credential, onStored }, caller)
}

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
    needs: { type: 'build', action: 'execute', ...byProject },
    body: Type.Object({
      code: Type.String({ minLength: 1, maxLength: 256 << 10 }),
      repl_id: Type.Optional(Type.String({ pattern: REPL_PATTERN })),
    }),
    example: { code: "await run('greetings/add', 1, 2)" },
    errors: ['quota_exceeded'],
    reply: { kind: 'item', status: 201, schema: Run },
    handle: async (ask) => {
      const run = await evaluated(ask)
      const reply = run.status === 'running' ? unfinished : item
      return reply(presentRun(run, ask.deps.payloads), 201)
    },
  }),
]
