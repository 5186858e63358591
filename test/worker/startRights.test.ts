import * as assert from 'uvu/assert'
import { compilePermissions } from '../../src/access/permissions.ts'
import { deleteProject } from '../../src/commands/projects/deleteProject.ts'
import type { HostCall } from '../../src/ports/runtime.ts'
import { plantBuild } from '../commands/plantEnv.ts'
import { refusedWith } from '../commands/refusedWith.ts'
import { suite } from '../support/suite.ts'
import { openCalls } from './openCalls.ts'

const { node, env, begin, ask, factsOf } = await openCalls()

const starts = suite('the permission to start a function from evaluated code')
starts.after(() => node.close())

for (const op of ['run', 'call'] as const)
  starts(
    `is that for the function which \`${op}\` starts, although another one had its reference`,
    async () => {
      const plan = await begin()
      const functions = [{ ns: op, var: 'out' }]
      const { project_id } = await plantBuild(node, env, { name: `till-${op}`, functions })
      await plantBuild(node, env, { name: `bank-${op}`, functions })
      const held = compilePermissions({ [`build:${project_id}`]: ['execute'] })
      /** While the credential is read, the reference becomes that of the other project. */
      const rights = async () => {
        await deleteProject(node.deps, { project: project_id }, env.caller)
        await node.views.settled()
        return held
      }
      const call: HostCall = { op, fn: `${op}/out`, args: [] }
      const error = await refusedWith('forbidden', () => ask(plan, call, { rights }))
      assert.match(error.message, 'build:')
      assert.equal(await factsOf(plan.stream_id, 'RunRequested'), [])
    },
  )

starts.run()
