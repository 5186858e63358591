import { project } from '../../src/domain/project.ts'
import type { DomainEvent } from '../../src/events/index.ts'
import { deployed, uploaded } from '../support/buildFacts.ts'
import { given as givenOf } from '../support/given.ts'
import { suite } from '../support/suite.ts'

const given = givenOf(project, { env_id: 'env', correlation_id: 'c' })

const nightly = { project_id: 'p', ns: 'jobs', var: 'nightly' }
const created: DomainEvent = { type: 'ProjectCreated', project_id: 'p', name: 'shop' }
const deleted: DomainEvent = { type: 'ProjectDeleted', project_id: 'p', build_ids: [] }
const paused = { type: 'SchedulePaused', ...nightly } as const
const resumed = { type: 'ScheduleResumed', ...nightly } as const
const pause = { type: 'PauseSchedule', ...nightly } as const
const resume = { type: 'ResumeSchedule', ...nightly } as const

const schedule = suite('the pause of a schedule')
schedule('begins once', () => {
  given(created).when(pause).then(paused)
  given(created, paused).when(pause).then()
  given(created, paused, resumed).when(pause).then(paused)
})
schedule('ends once', () => {
  given(created).when(resume).then()
  given(created, paused).when(resume).then(resumed)
  given(created, paused, resumed).when(resume).then()
})
schedule('is bound to the function, so a deployment does not end it', () => {
  given(created, paused, uploaded('a'), deployed('a')).when(pause).then()
  given(created, paused, uploaded('a'), deployed('a')).when(resume).then(resumed)
})
schedule('concerns no other function', () => {
  const other = { ...nightly, var: 'hourly' }
  given(created, paused)
    .when({ type: 'PauseSchedule', ...other })
    .then({ type: 'SchedulePaused', ...other })
  given(created, paused, { type: 'SchedulePaused', ...other }, resumed)
    .when({ type: 'PauseSchedule', ...other })
    .then()
})
schedule('does not refuse a deployment that was decided before it', () => {
  const build = { build_id: 'a', project_id: 'p', hash: 'hash of a', functions: [] }
  given(created, uploaded('a'), paused)
    .when({ type: 'DeployBuild', build, fence: 0 })
    .then({ type: 'BuildDeployed', ...build })
})
schedule('needs a project', () => {
  given().when(pause).refuses('not_found')
  given(created, deleted).when(pause).refuses('not_found')
  given(created, paused, deleted).when(resume).refuses('not_found')
})
schedule.run()
