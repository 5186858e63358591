import * as assert from 'uvu/assert'
import { runSchedule } from '../../../src/commands/schedules/runSchedule.ts'
import { knownSchedulesOf } from '../../../src/commands/schedules/schedules.ts'
import { AppError } from '../../../src/errors.ts'
import { derivedIdBeside, newId } from '../../../src/ids.ts'
import { suite } from '../../support/suite.ts'
import { openCommands } from '../openCommands.ts'
import { plantBuild, plantEnv } from '../plantEnv.ts'
import { refusedWith } from '../refusedWith.ts'

const node = await openCommands()
const { deps } = node
const env = await plantEnv(node, 'acme')
const schedule = { cron: '0 0 * * *', timezone: 'UTC' }
await plantBuild(node, env, { name: 'shop', functions: [{ ns: 'a', var: 'b', schedule }] })
const project = deps.views.directory.project(env.env_id, 'shop')
assert.ok(project)
const [{ schedule_id } = { schedule_id: '' }] = knownSchedulesOf(project)
const at = { project: 'shop', schedule_id }

const quotas = Object.assign(Object.create(deps.quotas) as typeof deps.quotas, {
  checkRun: () => Promise.reject(new AppError('quota_exceeded', 'full')),
})

const started = suite('a schedule that is started now')
started.after(() => node.close())

started('with a key is started once, although the plan is full when the request is sent again', async () => {
  const claim = newId()
  const caller = { ...env.caller, newId: (what: string) => derivedIdBeside(claim, what) }
  const first = await runSchedule(deps, at, caller)
  assert.equal(await runSchedule({ ...deps, quotas }, at, caller), first)
  assert.equal(await node.typesIn(first.stream_id), ['StreamCreated', 'RunRequested'])
})

started('is refused by a full plan', () =>
  refusedWith('quota_exceeded', () =>
    runSchedule({ ...deps, quotas }, at, {
      ...env.caller,
      newId: (what) => derivedIdBeside(newId(), what),
    }),
  ),
)

started.run()
