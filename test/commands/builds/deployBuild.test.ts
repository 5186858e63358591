import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { clock } from '../../../src/clock.ts'
import { createProject } from '../../../src/commands/projects/createProject.ts'
import { deleteProject } from '../../../src/commands/projects/deleteProject.ts'
import { deployBuild } from '../../../src/commands/builds/deployBuild.ts'
import { STALE_MS } from '../../../src/commands/projects/reserveName.ts'
import { uploadBuild } from '../../../src/commands/builds/uploadBuild.ts'
import { Payloads } from '../../../src/content/payloads.ts'
import { openAggregates } from '../../../src/domain/aggregates.ts'
import { isAppError } from '../../../src/errors.ts'
import type { FunctionSpec } from '../../../src/events/project.ts'
import type { PayloadRef } from '../../../src/events/scalars.ts'
import { streamOf } from '../../../src/events/streams.ts'
import { newId } from '../../../src/ids.ts'
import { Directory } from '../../../src/projections/directory.ts'
import { suite } from '../../support/suite.ts'
import { tempDir } from '../../support/tempDir.ts'
import { callerOf, openCommands } from '../openCommands.ts'
import { refusedWith } from '../refusedWith.ts'

const node = await openCommands()
const { deps } = node
/** A second node on the same log: what the first has in memory, it has not. */
const elsewhere = { ...deps, aggregates: openAggregates(node.store) }
const dir = tempDir()
const env_id = newId()
const caller = callerOf(env_id)

const addressOf = (path: string) => ({ method: 'POST', service: 'pay', path })
const hooksAt = (paths: readonly string[]): FunctionSpec[] =>
  paths.map((path, i) => ({
    ns: 'hooks',
    var: `hook${i}`,
    webhook: { ...addressOf(path), name: 'n', description: '', auth: 'none' },
  }))
/** Functions that make a list exceed 64 KiB. */
const MANY = Array.from({ length: 2000 }, (_, i) => ({ ns: 'module', var: `function${i}_of_many` }))

/** A directory as it is before it knows of the deployments of other projects. */
class LateDirectory extends Directory {
  override webhookAt(): undefined {
    return undefined
  }
}

let count = 0
const newProject = async (as = caller): Promise<string> =>
  (await createProject(deps, { name: `p${++count}` }, as)).project_id
/** Uploads a build with these webhooks; resolves with its id. */
const uploaded = async (
  project: string,
  paths: readonly string[],
  { many = false, live = false, as = caller } = {},
): Promise<string> => {
  const content = `${++count}`
  const hash = createHash('sha256').update(content).digest('hex')
  node.functionsOf.set(hash, [...hooksAt(paths), ...(many ? MANY : [])])
  const file = join(dir, hash)
  await writeFile(file, content)
  const { build } = await uploadBuild(deps, { project, file, hash, size: content.length, live }, as)
  return build.build_id
}
const deploy = (project: string, build_id: string, { as = caller, on = deps } = {}) =>
  deployBuild(on, { project, build_id }, as)
/** A new project with a build that has these webhooks, not deployed. */
const ready = async (paths: readonly string[], { many = false, as = caller } = {}) => {
  const project = await newProject(as)
  return { project, build_id: await uploaded(project, paths, { many, as }) }
}
const deployed = async (paths: readonly string[], options = {}): Promise<string> => {
  const { project, build_id } = await ready(paths, options)
  await deploy(project, build_id)
  return project
}
const typesIn = async (project: string) =>
  (await Array.fromAsync(node.store.read(streamOf.project(project)))).map(({ event }) => event.type)
const fenceOf = (project: string): Promise<number> =>
  node.aggregates.projects.read(streamOf.project(project), (state) =>
    state.status === 'active' ? state.fence : -1,
  )
/** Reserves an address as a node does that dies before its deployment takes effect. */
const reservedAgo = async (path: string, project_id: string, ms: number): Promise<void> => {
  const by = {
    project_id,
    fence: await fenceOf(project_id),
    reserved_at: new Date(clock.now() - ms).toISOString(),
  }
  const webhook = addressOf(path)
  await node.aggregates.webhooks.handle(
    streamOf.webhook(env_id, webhook),
    { type: 'ReserveWebhook', webhook, by },
    caller.cause,
  )
}

const deploying = suite('deploying a build')

deploying('replaces the build that was deployed', async () => {
  const project = await newProject()
  const [first, second] = [await uploaded(project, []), await uploaded(project, [])]
  assert.is((await deploy(project, first)).build.deployed, true)
  assert.is((await deploy(project, second)).build.deployed, true)
  assert.is(node.views.directory.project(env_id, project)?.deployed?.build_id, second)
})

deploying('again stores nothing new in its project', async () => {
  const { project, build_id } = await ready(['/again'])
  await deploy(project, build_id)
  await deploy(project, build_id)
  assert.equal(await typesIn(project), ['ProjectCreated', 'BuildUploaded', 'BuildDeployed'])
})

deploying('takes a live build too', async () => {
  const project = await newProject()
  const build_id = await uploaded(project, [], { live: true })
  await deploy(project, build_id)
  await node.views.settled()
  assert.is(node.views.directory.project(env_id, project)?.deployed?.build_id, build_id)
})

deploying('refuses a build of another project or environment as if it did not exist (I7)', async () => {
  const { project, build_id } = await ready([])
  await refusedWith('not_found', async () => deploy(await newProject(), build_id))
  await refusedWith('not_found', () => deploy(project, newId()))
  await refusedWith('not_found', () => deploy(project, build_id, { as: callerOf(newId()) }))
})

deploying('several builds of one project at once deploys each, and the last one counts', async () => {
  const project = await newProject()
  const builds = await Promise.all([1, 2, 3, 4].map((n) => uploaded(project, ['/shared', `/own-${n}`])))
  await Promise.all(builds.map((build_id, i) => deploy(project, build_id, { on: i % 2 ? deps : elsewhere })))
  assert.is((await typesIn(project)).filter((type) => type === 'BuildDeployed').length, 4)
  await node.views.settled()
  const last = node.views.directory.project(env_id, project)?.deployed
  const paths = (last?.functions ?? []).map(({ webhook }) => webhook?.path ?? '')
  assert.is(paths.length, 2)
  for (const path of ['/shared', ...[1, 2, 3, 4].map((n) => `/own-${n}`)]) {
    const other = await ready([path])
    if (paths.includes(path)) await refusedWith('conflict', () => deploy(other.project, other.build_id))
    else await deploy(other.project, other.build_id)
  }
})

deploying.run()

const webhooks = suite('a webhook address')

webhooks('that another project serves is refused; the error names the webhook and the project', async () => {
  const project = await deployed(['/taken'])
  const other = await ready(['/taken'])
  const { message } = await refusedWith('conflict', () => deploy(other.project, other.build_id))
  assert.match(message, 'POST pay/taken')
  assert.match(message, node.views.directory.project(env_id, project)?.name ?? 'no name')
})

for (const [what, first, second] of [
  ['deployed', true, false],
  ['new', false, true],
] as const)
  webhooks(`counts when the list of functions of the ${what} build exceeds 64 KiB`, async () => {
    const path = `/many-${what}`
    await deployed([path], { many: first })
    const other = await ready([path], { many: second })
    await refusedWith('conflict', () => deploy(other.project, other.build_id))
  })

webhooks('goes to one of the projects that deploy it at once, on several nodes', async () => {
  const rivals = await Promise.all([1, 2, 3, 4, 5, 6].map(() => ready(['/race'])))
  const results = await Promise.allSettled(
    rivals.map(({ project, build_id }, i) => deploy(project, build_id, { on: i % 2 ? deps : elsewhere })),
  )
  assert.is(results.filter(({ status }) => status === 'fulfilled').length, 1)
  for (const result of results)
    if (result.status === 'rejected') assert.ok(isAppError(result.reason, 'conflict'), String(result.reason))
})

webhooks('is served by one project when builds with several of them compete', async () => {
  const rivals = await Promise.all([
    ready(['/x', '/y', '/z']),
    ready(['/z', '/y', '/x']),
    ready(['/y', '/x', '/w']),
  ])
  const results = await Promise.allSettled(
    rivals.map(({ project, build_id }, i) => deploy(project, build_id, { on: i % 2 ? deps : elsewhere })),
  )
  assert.is(results.filter(({ status }) => status === 'fulfilled').length, 1)
})

webhooks('stays with its project over redeploys', async () => {
  const project = await deployed(['/stays'])
  await deploy(project, await uploaded(project, ['/stays', '/more']))
  const other = await ready(['/stays'])
  await refusedWith('conflict', () => deploy(other.project, other.build_id))
})

webhooks('that a new build drops is available at once', async () => {
  const project = await deployed(['/dropped', '/kept'])
  await deploy(project, await uploaded(project, ['/kept']))
  const other = await ready(['/dropped'])
  await deploy(other.project, other.build_id, { on: elsewhere })
  const back = await uploaded(project, ['/dropped'])
  await refusedWith('conflict', () => deploy(project, back))
})

webhooks('of a deleted project is available at once', async () => {
  const project = await deployed(['/deleted'])
  await deleteProject(deps, { project }, caller)
  await deployed(['/deleted'])
})

webhooks('of a refused deployment is available at once', async () => {
  await deployed(['/m'])
  const refused = await ready(['/l', '/m'])
  await refusedWith('conflict', () => deploy(refused.project, refused.build_id))
  await deployed(['/l'])
})

webhooks('is available after a deployment that lost a later address to a rival', async () => {
  const rival = await newProject()
  const refused = await ready(['/r', '/s'])
  await reservedAgo('/s', rival, 0)
  await refusedWith('conflict', () => deploy(refused.project, refused.build_id))
  await deployed(['/r'])
})

webhooks('of one environment does not affect another one', async () => {
  await deployed(['/both'])
  const as = callerOf(newId())
  const { project, build_id } = await ready(['/both'], { as })
  assert.is((await deploy(project, build_id, { as })).build.deployed, true)
})

webhooks('that version 0.1.0 deployed without a reservation counts, and can be kept', async () => {
  const { project, build_id } = await ready(['/before'])
  const build = { build_id, project_id: project, hash: 'h', functions: hooksAt(['/before']) }
  const command = { type: 'DeployBuild', build, fence: await fenceOf(project) } as const
  await node.aggregates.projects.handle(streamOf.project(project), command, caller.cause)
  const other = await ready(['/before'])
  await refusedWith('conflict', () => deploy(other.project, other.build_id))
  await deploy(project, await uploaded(project, ['/before']))
  await refusedWith('conflict', () => deploy(other.project, other.build_id))
})

webhooks.run()

const reservations = suite('a reservation of a webhook address')

for (const many of [false, true])
  reservations(
    `counts before the directory knows of its deployment${many ? ', also over 64 KiB' : ''}`,
    async () => {
      const path = `/unknown-${many}`
      await deployed([path], { many })
      const other = await ready([path])
      const directory = new LateDirectory((ref) => deps.payloads.load({ ref }))
      void directory.run(node.store, node.signal)
      await directory.reach(await node.store.head())
      const late = { ...deps, views: { ...deps.views, directory } }
      await refusedWith('conflict', () => deploy(other.project, other.build_id, { on: late }))
    },
  )

reservations('counts while its deployment may still take effect', async () => {
  const [holder, other] = [await newProject(), await ready(['/young'])]
  await reservedAgo('/young', holder, 0)
  await refusedWith('conflict', () => deploy(other.project, other.build_id))
})

reservations('of a node that died is taken over', async () => {
  await reservedAgo('/stale', await newProject(), STALE_MS + 1000)
  await deployed(['/stale'])
  await reservedAgo('/ahead', await newProject(), -400 * 24 * 3_600_000) // its clock was ahead
  await deployed(['/ahead'])
})

reservations('that was taken over is not enough for its slow deployment to take effect', async () => {
  const slow = await ready(['/slow'])
  const fence = await fenceOf(slow.project)
  await reservedAgo('/slow', slow.project, STALE_MS + 1000)
  await deployed(['/slow'])
  const build = {
    build_id: slow.build_id,
    project_id: slow.project,
    hash: 'h',
    functions: hooksAt(['/slow']),
  }
  await refusedWith('conflict', () =>
    node.aggregates.projects.handle(
      streamOf.project(slow.project),
      { type: 'DeployBuild', build, fence },
      caller.cause,
    ),
  )
  await refusedWith('conflict', () => deploy(slow.project, slow.build_id))
})

reservations('of many addresses by one project need its list of functions once', async () => {
  const paths = Array.from({ length: 20 }, (_, n) => `/once/${n}`)
  const holder = await newProject()
  for (const path of paths) await reservedAgo(path, holder, STALE_MS + 1000)
  await deploy(holder, await uploaded(holder, ['/once'], { many: true }))
  const other = await ready(paths)
  let loaded = 0
  class Counting extends Payloads {
    override loadList(ref: PayloadRef): Promise<unknown[]> {
      loaded++
      return deps.payloads.loadList(ref)
    }
  }
  const payloads = new Counting(deps.blobs)
  await deploy(other.project, other.build_id, { on: { ...deps, payloads } })
  assert.ok(loaded <= 1, `${loaded} loads`)
})

reservations('is void once its project deployed a build without the address', async () => {
  const project = await newProject()
  await reservedAgo('/void', project, 0)
  await deploy(project, await uploaded(project, []))
  await deployed(['/void'])
})

reservations(
  'keeps every address with one project, however deployments and deletions interleave',
  async () => {
    const paths = ['/i1', '/i2', '/i3']
    const projects = await Promise.all(
      [0, 1, 2].map(async (n) => {
        const project = await newProject()
        const sets = [paths.slice(n), paths.slice(0, n + 1), []]
        return { project, builds: await Promise.all(sets.map((set) => uploaded(project, set))) }
      }),
    )
    for (const round of [0, 1, 2, 3, 4, 5]) {
      await Promise.allSettled(
        projects.flatMap(({ project, builds }, i) =>
          [deps, elsewhere].map((on, j) => deploy(project, builds[(round + i + j) % 3] ?? '', { on })),
        ),
      )
      await node.views.settled()
      const served = projects.flatMap(({ project }) =>
        (node.views.directory.project(env_id, project)?.deployed?.functions ?? []).flatMap(({ webhook }) =>
          webhook ? [webhook.path] : [],
        ),
      )
      assert.is(new Set(served).size, served.length, `round ${round}: ${served.join(' ')}`)
    }
  },
)

reservations.after(() => node.close())
reservations.run()
