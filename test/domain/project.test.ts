import * as assert from 'uvu/assert'
import { project } from '../../src/domain/project.ts'
import type { DomainEvent, EventOf } from '../../src/events/index.ts'
import { deployed, uploaded } from '../support/buildFacts.ts'
import { given as givenOf } from '../support/given.ts'
import { suite } from '../support/suite.ts'

const given = givenOf(project, { env_id: 'env', correlation_id: 'c' })

const created: DomainEvent = { type: 'ProjectCreated', project_id: 'p', name: 'shop' }
const restricted: DomainEvent = { type: 'ProjectNetworkChanged', project_id: 'p', network: ['a.example'] }
const renamed: DomainEvent = { type: 'ProjectRenamed', project_id: 'p', name: 'store' }
const deleted: DomainEvent = { type: 'ProjectDeleted', project_id: 'p', build_ids: [] }
const abandoned: EventOf<'DeploymentAbandoned'> = { type: 'DeploymentAbandoned', project_id: 'p' }
const renameAbandoned: EventOf<'RenameAbandoned'> = { type: 'RenameAbandoned', project_id: 'p' }
const creationAbandoned: EventOf<'CreationAbandoned'> = { type: 'CreationAbandoned', project_id: 'p' }
const abandon = (fence: number) => ({ type: 'AbandonDeployment', project_id: 'p', fence }) as const

const create = { type: 'CreateProject', project_id: 'p', name: 'shop' } as const
const rename = { type: 'RenameProject', project_id: 'p', name: 'store', fence: 0 } as const
const abandonRename = (fence: number) => ({ type: 'AbandonRename', project_id: 'p', fence }) as const
const remove = { type: 'DeleteProject', project_id: 'p' } as const
const upload = (build_id: string, build_type: 'release' | 'live' = 'release') => {
  const { type: _, ...build } = uploaded(build_id, build_type)
  return { type: 'UploadBuild', build } as const
}
const deploy = (build_id: string, fence = 0) => {
  const build = { build_id, project_id: 'p', hash: `hash of ${build_id}`, functions: [] }
  return { type: 'DeployBuild', build, fence } as const
}

const gone = (build_id: string, reason: 'asked' | 'superseded' = 'asked'): EventOf<'BuildDeleted'> => ({
  type: 'BuildDeleted',
  build_id,
  project_id: 'p',
  size: 9,
  reason,
})
const deleteBuild = (build_id: string) => ({ type: 'DeleteBuild', project_id: 'p', build_id }) as const

const life = suite('a project')
life('is created', () => given().when(create).then(created))
life('is created once, also by a command after its deletion', () => {
  given(created).when(create).then()
  given(created, deleted).when(create).then()
})
life('has a network, which changes once for each new list', () => {
  const changeNetwork = { type: 'ChangeNetwork', project_id: 'p', network: ['a.example'] } as const
  given(created).when(changeNetwork).then(restricted)
  given(created, restricted).when(changeNetwork).then()
  given(created, restricted)
    .when({ ...changeNetwork, network: null })
    .then({ ...restricted, network: null })
  given()
    .when({ ...create, network: ['a.example'] })
    .then({ ...created, network: ['a.example'] })
  given(created, deleted).when(changeNetwork).refuses('not_found')
})
life('is not created on an old fence: another project took its name', () => {
  const abandonCreation = { type: 'AbandonCreation', project_id: 'p', fence: -1 } as const
  given().when(abandonCreation).then(creationAbandoned)
  given(created).when(abandonCreation).then()
  given(creationAbandoned).when(abandonCreation).then()
  given(creationAbandoned).when(create).refuses('conflict')
  given(creationAbandoned)
    .when({ ...create, fence: 0 })
    .then(created)
})
life('is renamed', () => given(created).when(rename).then(renamed))
life('is not renamed on an old fence: another rename took effect, or it was abandoned', () => {
  given(created, renamed)
    .when({ ...rename, name: 'third' })
    .refuses('conflict')
  given(created, renameAbandoned).when(rename).refuses('conflict')
  given(created, renameAbandoned)
    .when({ ...rename, fence: 1 })
    .then(renamed)
})
life('is renamed on the fence of its name, whatever its builds do', () =>
  given(created, uploaded('a'), deployed('a'), abandoned).when(rename).then(renamed),
)
life('can abandon a rename before it takes effect, not after it', () => {
  given(created).when(abandonRename(0)).then(renameAbandoned)
  given(created, renamed).when(abandonRename(0)).then()
  given(created, deleted).when(abandonRename(0)).then()
})
life('stores nothing when it already has the name', () => given(created, renamed).when(rename).then())
life('is deleted with its builds', () =>
  given(created, uploaded('a'), uploaded('b', 'live'))
    .when(remove)
    .then({ ...deleted, build_ids: ['a', 'b'] }),
)
for (const [what, facts] of [
  ['absent', []],
  ['deleted', [created, deleted]],
] as const) {
  life(`that is ${what} refuses every other command`, () => {
    for (const command of [rename, remove, upload('a'), deploy('a')])
      given(...facts)
        .when(command)
        .refuses('not_found')
  })
}
life.run()

const builds = suite('the builds of a project')
builds('are uploaded, each once', () => {
  given(created).when(upload('a')).then(uploaded('a'))
  given(created, uploaded('a')).when(upload('b', 'live')).then(uploaded('b', 'live'))
  given(created, uploaded('a')).when(upload('a')).then()
})
builds('are deployed', () => given(created, uploaded('a')).when(deploy('a')).then(deployed('a')))
builds('are deployed one at a time: the new build replaces the old one', () =>
  given(created, uploaded('a'), uploaded('b'), deployed('a')).when(deploy('b', 3)).then(deployed('b', 'a')),
)
builds('can be deployed again after another one', () =>
  given(created, uploaded('a'), uploaded('b'), deployed('a'), deployed('b', 'a'))
    .when(deploy('a', 4))
    .then(deployed('a', 'b')),
)
builds('that are deployed already are not deployed again', () =>
  given(created, uploaded('a'), deployed('a')).when(deploy('a')).then(),
)
builds('stay deployed when another one is uploaded', () =>
  given(created, uploaded('a'), deployed('a'), uploaded('b')).when(deploy('a')).then(),
)
builds('have one content under a build_id: other bytes or another type are refused', () => {
  given(created, uploaded('a')).when(upload('a', 'live')).refuses('conflict')
  const { build } = upload('a')
  given(created, uploaded('a'))
    .when({ type: 'UploadBuild', build: { ...build, hash: 'other' } })
    .refuses('conflict')
})
builds('are not deployed on an old fence: another deployment took effect, or it was abandoned', () => {
  const before = [created, uploaded('a'), uploaded('b')]
  given(...before, deployed('a'))
    .when(deploy('b', 0))
    .refuses('conflict')
  given(...before, abandoned)
    .when(deploy('b', 0))
    .refuses('conflict')
  given(...before, abandoned)
    .when(deploy('b', 3))
    .then(deployed('b'))
})
builds('have a fence that uploads and new names leave as it is', () =>
  given(created, uploaded('a'), renamed, uploaded('b')).when(deploy('b', 0)).then(deployed('b')),
)
builds('are abandoned before their deployment takes effect, not after it', () => {
  given(created).when(abandon(0)).then(abandoned)
  given(created, uploaded('a'), deployed('a')).when(abandon(0)).then()
  given(created, abandoned).when(abandon(0)).then()
  given(created, deleted).when(abandon(0)).then()
})
builds('that are unknown are not deployed', () =>
  given(created, uploaded('a')).when(deploy('b')).refuses('not_found'),
)
builds('that are live are deployed as others', () =>
  given(created, uploaded('a', 'live')).when(deploy('a')).then(deployed('a')),
)
builds.run()

const deletion = suite('the deletion of a build')
deletion('is for builds that are not deployed, once', () => {
  given(created, uploaded('a')).when(deleteBuild('a')).then(gone('a'))
  given(created, uploaded('a'), gone('a')).when(deleteBuild('a')).then()
  given(created, uploaded('a'), uploaded('b'), deployed('a'), deployed('b', 'a'))
    .when(deleteBuild('a'))
    .then(gone('a'))
  given(created, uploaded('a'), deployed('a')).when(deleteBuild('a')).refuses('conflict')
  given(created).when(deleteBuild('a')).refuses('not_found')
  given(created, uploaded('a'), deleted).when(deleteBuild('a')).refuses('not_found')
})
deletion('is for ever: the build is neither deployed nor uploaded again', () => {
  given(created, uploaded('a'), gone('a')).when(deploy('a')).refuses('not_found')
  given(created, uploaded('a'), gone('a')).when(upload('a')).refuses('conflict')
})
deletion('of live builds leaves the deployed one', () => {
  const live = ['1', '2', '3', '4', '5', '6'].map((id) => uploaded(id, 'live'))
  given(created, ...live, deployed('1'))
    .when(upload('7', 'live'))
    .then(uploaded('7', 'live'), gone('2', 'superseded'))
})
deletion('of live builds leaves the newest five', () => {
  const live = ['1', '2', '3', '4', '5'].map((id) => uploaded(id, 'live'))
  given(created, ...live.slice(1))
    .when(upload('6', 'live'))
    .then(uploaded('6', 'live'))
  given(created, uploaded('r'), ...live)
    .when(upload('6', 'live'))
    .then(uploaded('6', 'live'), gone('1', 'superseded'))
  given(created, ...live)
    .when(upload('r'))
    .then(uploaded('r'))
})
deletion('makes room under the limit of builds per project', () => {
  const third = { ...upload('c'), most: 2 }
  given(created, uploaded('a'), uploaded('b')).when(third).refuses('quota_exceeded')
  given(created, uploaded('a'), uploaded('b'), gone('a')).when(third).then(uploaded('c'))
  given(created, uploaded('a'), uploaded('c')).when(third).then()
})
deletion('costs as much after many deletions as after few: each upload of svc dev is one', () => {
  const seconds = (count: number): number => {
    const before = process.cpuUsage()
    const ids = Array.from({ length: count }, (_, n) => `build ${n}`)
    given(created, ...ids.flatMap((id) => [uploaded(id), gone(id)]))
      .when(deleteBuild('build 0'))
      .then()
    return process.cpuUsage(before).user / 1e6
  }
  seconds(1000) // the code is optimized
  assert.ok(seconds(20_000) < 1, 'a fact is folded in 25 microseconds')
})
deletion.run()
