import * as assert from 'uvu/assert'
import { deleteBuild } from '../../../src/commands/builds/deleteBuild.ts'
import { createOrg } from '../../../src/commands/orgs/createOrg.ts'
import { deleteOrg } from '../../../src/commands/orgs/deleteOrg.ts'
import { toBuildFunctions, toFunctionSpecs } from '../../../src/builds/metadata/functionSpec.ts'
import type { FunctionSpec } from '../../../src/events/project.ts'
import { newId } from '../../../src/ids.ts'
import { buildKey, oldFunctionsKey } from '../../../src/ports/runtime.ts'
import { suite } from '../../support/suite.ts'
import { openCommands } from '../openCommands.ts'
import { plantBuild, plantEnv } from '../plantEnv.ts'
import { type Entry, entriesOf, eventOf, importInto, type Node } from './importHarness.ts'

const uploaded = (metadata: object, name = 'f'): FunctionSpec[] =>
  toFunctionSpecs('main', 'main.ts', [{ var: name, metadata }])

/** Functions with every field of metadata. */
const valid = toBuildFunctions([
  ...uploaded({}, 'plain'),
  ...uploaded({ 'on-event': 'asked', retry: 3, once: true, timeout: 1000 }, 'onAsked'),
  ...uploaded({ schedule: '0 3 * * *', context: ['B', 'A'] }, 'nightly'),
  ...uploaded(
    {
      webhook: { service: 'bank', path: 'paid', verify: { standardWebhooks: 'KEY' }, cors: '*', agent: 'a' },
    },
    'paid',
  ),
  ...uploaded(
    { webhook: { service: 'bank', path: '/of/:id', auth: 'required', cors: ['https://a.example'] } },
    'of',
  ),
  ...uploaded({ mcp: { service: 'bank', description: ' a tool ', input: { type: 'object' } } }, 'tool'),
  ...uploaded({ 'secret-headers': ['X-Key'], retry: { attempts: 1, delay: 5 } }, 'secret'),
])

const source = await openCommands()
const planted = async (slug: string, functions: FunctionSpec[]) => {
  const tenant = await plantEnv(source, slug)
  const build = await plantBuild(source, tenant, { name: slug, functions })
  return { build, entries: () => entriesOf(source, tenant) }
}
const short = await planted('short', valid)
const many = Array.from({ length: 3000 }, (_, n) => ({ ns: 'main', var: `f${n}` })).sort((a, b) =>
  a.var < b.var ? -1 : 1,
)
const long = await planted('long', many)
const target = await openCommands()

const resultOf = (node: Node, entries: readonly Entry[]): Promise<string> =>
  importInto(node, entries).then(() => 'none', String)

/** The refusal of a file whose build has these functions. */
const refusalOf = async (functions: readonly object[]): Promise<string> => {
  const entries = await short.entries()
  eventOf(entries, 'BuildUploaded')['functions'] = functions
  return resultOf(target, entries)
}

const webhook = { service: 's', path: '/p', method: 'POST', name: 'n', description: '', auth: 'none' }
const f = { ns: 'main', var: 'f' }
const scheduled = (count: number) =>
  Array.from({ length: count }, (_, n) => ({
    ...f,
    var: `f${n}`,
    schedule: { cron: '0 3 * * *', timezone: 'UTC' },
  }))

const refused: Readonly<Record<string, readonly object[]>> = {
  'a schedule that cannot be read': [{ ...f, schedule: { cron: '0 3', timezone: 'UTC' } }],
  'more schedules than fit': scheduled(1001),
  'too much metadata': [
    { ...f, mcp: { service: 's', description: 'd', input: { title: 'x'.repeat(9000) } } },
  ],
  'metadata that needs too much memory': [
    {
      ...f,
      mcp: { service: 's', description: 'd', input: { enum: Array.from({ length: 2500 }, () => ({})) } },
    },
  ],
  'a schema that cannot be checked': [{ ...f, mcp: { service: 's', description: 'd', input: { enum: 5 } } }],
  'a name that no reference can have': [{ ...f, var: 'a b' }],
  'a namespace with a line break': [{ ...f, ns: 'a\nb' }],
  'a header that would not be masked': [{ ...f, secret_headers: ['X-Key'] }],
  'a key that no context variable has': [{ ...f, context: ['a b'] }],
  'an event that controls runs': [{ ...f, on_event: 'svc:call' }],
  'a path that leads upwards': [{ ...f, webhook: { ...webhook, path: '/a/../b' } }],
  'a signature of a preset that does not exist': [
    { ...f, webhook: { ...webhook, verify: { preset: 'x', context: 'KEY' } } },
  ],
  'an origin that is none': [{ ...f, webhook: { ...webhook, cors: ['x'] } }],
  'a function that is there twice': [f, f],
  'a webhook that is there twice': [
    { ...f, webhook },
    { ...f, var: 'g', webhook },
  ],
  'a timeout of a day': [{ ...f, timeout: 86_400_000 }],
}

const functions = suite('imported functions', { timeoutMs: 60_000 })

for (const [what, specs] of Object.entries(refused))
  functions(`are refused with ${what}`, async () => assert.match(await refusalOf(specs), 'functions: '))

functions('are refused beyond the number that the plan allows in a build', async () => {
  const entries = await long.entries()
  for (const [plan, most] of [
    ['free', 500],
    ['pro', 2000],
  ] as const) {
    ;(entries[0] as Entry).line['plan'] = plan
    assert.match(await resultOf(await openCommands(), entries), `The plan allows ${most} functions per build`)
  }
})

functions('are refused beyond the number that the plan allows in all builds', async () => {
  const tenant = await plantEnv(source, 'three')
  for (const name of ['a', 'b', 'c'])
    await plantBuild(source, tenant, { name, functions: many.slice(0, 400) })
  const entries = await entriesOf(source, tenant)
  ;(entries[0] as Entry).line['plan'] = 'free'
  assert.match(await resultOf(await openCommands(), entries), 'The plan allows 1000 functions in all')
})

functions('count by the plan of the organization, if it exists', async () => {
  const node = await openCommands()
  await plantEnv(node, 'long', 'free')
  assert.match(await resultOf(node, await long.entries()), 'The plan allows 500 functions per build')
})

functions(
  'count by the plan of the organization that has the slug after the deletion of an earlier one',
  async () => {
    const node = await openCommands()
    const [plan, cause] = ['free', { correlation_id: newId() }] as const
    await createOrg(node.deps, { slug: 'long', plan }, cause)
    await deleteOrg(node.deps, { org: 'long' }, cause)
    await createOrg(node.deps, { slug: 'long', plan }, cause)
    assert.match(await resultOf(node, await long.entries()), 'The plan allows 500 functions per build')
  },
)

functions('of a build without a zip are none, whatever the file says', async () => {
  const node = await openCommands()
  const { build } = long
  const entries = await long.entries()
  const [zip, list] = [buildKey(build), oldFunctionsKey(buildKey(build))]
  const without = entries.filter(({ line }) => line['blob'] !== zip)
  assert.ok(without.some(({ line }) => line['blob'] === list))
  const end = without.at(-1)?.line['end'] as { blobs: number }
  end.blobs--
  assert.is(await resultOf(node, without), 'none')
  await node.views.settled()
  assert.equal(node.views.directory.projectById(build.project_id)?.deployed?.functions, [])
})

functions('of a deleted build count as no storage', async () => {
  const tenant = await plantEnv(source, 'deleted')
  const { project_id } = await plantBuild(source, tenant, { name: 'kept', functions: many })
  const old = await plantBuild(source, tenant, { name: '', project_id, functions: many, build_type: 'live' })
  await deleteBuild(source.deps, { project: project_id, build_id: old.build_id }, tenant.caller)
  const node = await openCommands()
  assert.is(await resultOf(node, await entriesOf(source, tenant)), 'none')
  const stored = async ({ views }: Node) => {
    await views.settled('holdings')
    return (await views.holdings.get(project_id))?.bytes
  }
  assert.is(await stored(node), await stored(source))
})

functions('are accepted as an upload has stored them', async () => {
  for (const { build, entries } of [short, long]) {
    assert.is(await resultOf(target, await entries()), 'none')
    await target.views.settled()
    const deployed = target.views.directory.projectById(build.project_id)?.deployed
    assert.equal(deployed?.functions, build === short.build ? valid : many)
  }
})

functions.run()
