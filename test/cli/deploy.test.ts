import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { uploadBuild } from '../../src/cli/uploadBuild.ts'
import { createClient } from '../../src/client/index.ts'
import { type Build, call } from '../support/build.ts'
import { cli, cliJson } from '../support/cli.ts'
import { EMBEDDED } from '../support/installation.ts'
import { bundleOf, writeProject } from '../support/project.ts'
import { spawnServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { unzipped } from '../support/unzipped.ts'

const server = await spawnServer({ env: { ...EMBEDDED, SVC_MASTER_KEY: '' } })
const { api } = server
const given = { env: { SVC_URL: server.url, SVC_DATA_DIR: server.dataDir } }
const svc = (...args: readonly string[]) => cli(args, given)
const json = <T>(...args: readonly string[]) => cliJson<T>(args, given)

interface Deployed {
  readonly build_id: string
  readonly uploaded: boolean
  readonly deployed: boolean
  readonly changes: { readonly added: string[]; readonly removed: string[]; readonly changed: string[] }
  readonly functions: readonly { readonly fn: string; readonly on_event?: string }[]
}

const HANDLER = `import { fn } from 'svc'
export const onOrder = fn({ 'on-event': 'order' }, async () => 1)
`
const PLAIN = 'export const add = (a: number, b: number) => a + b\n'

const projectOf = (name: string, files: Readonly<Record<string, string>> = {}) =>
  writeProject({
    'package.json': JSON.stringify({ name }),
    'src/orders.ts': HANDLER,
    'src/math.ts': PLAIN,
    ...files,
  })

const buildsOf = async (project: string): Promise<Build[]> =>
  (await api.page<Build>(`/projects/${project}/builds`)).data

const build = suite('svc build', { timeoutMs: 60_000 })

build('lists the functions of a project, and writes its zip', async () => {
  const out = join(tempDir(), 'build.zip')
  const { functions, size, modules, file } = await json<{
    functions: Deployed['functions']
    size: number
    modules: string[]
    file: string
  }>('build', projectOf('listed'), '--out', out)
  assert.equal(functions, [{ fn: 'math/add' }, { fn: 'orders/onOrder', on_event: 'order' }])
  assert.equal([file, modules, size], [out, ['src/math.ts', 'src/orders.ts'], readFileSync(out).length])
  assert.equal(Object.keys(await unzipped(readFileSync(out))), [
    'math.js',
    'math.js.map',
    'orders.js',
    'orders.js.map',
  ])
  const { out: text } = await svc('build', projectOf('listed'))
  assert.match(
    text,
    /^FUNCTION +STARTED BY\nmath\/add +call\norders\/onOrder +event order\nlisted: [\d.]+ K?i?B\n$/,
  )
})

build('lists a tool of AI agents as what starts its function', async () => {
  const folder = projectOf('tools', {
    'src/orders.ts': `import { fn } from 'svc'
export const refund = fn({ mcp: { service: 'shop', description: 'Refunds' } }, async () => 1)
`,
  })
  const { functions } = await json<{ functions: unknown[] }>('build', folder)
  assert.equal(functions[1], { fn: 'orders/refund', mcp: { service: 'shop', description: 'Refunds' } })
  assert.match((await svc('build', folder)).out, /^orders\/refund +tool of shop$/m)
})

build('shows the place of a mistake with its line', async () => {
  const { code, err } = await svc(
    'build',
    projectOf('broken', { 'src/math.ts': `\nexport { x } from './prices'` }),
  )
  assert.is(code, 1)
  assert.is(
    err,
    `svc: src/math.ts:2:19: Could not resolve "./prices"\n  export { x } from './prices'\n${' '.repeat(20)}^\n`,
  )
})

build('names the source of a module that does not load, and of wrong metadata', async () => {
  const thrown = await svc(
    'build',
    projectOf('thrown', { 'src/math.ts': `${PLAIN}\nthrow new Error('no luck')` }),
  )
  assert.equal(
    [thrown.code, thrown.err.includes('src/math.ts:3'), thrown.err.includes('no luck')],
    [1, true, true],
  )
  const wrong = await svc(
    'build',
    projectOf('wrong', { 'src/orders.ts': HANDLER.replace('on-event', 'on-evnt') }),
  )
  assert.is(wrong.code, 1)
  assert.match(wrong.err, 'src/orders.ts:2:14: onOrder: Expected the key on-event, got on-evnt')
})

build('warns about functions that nothing can start, with their source', async () => {
  const folder = projectOf('worker', { 'src/web.ts': 'export default { fetch: () => new Response("a") }' })
  const found = 'src/web.ts: Expected each function to be an export of its own, found default.fetch'
  for (const args of [['build'], ['deploy', '--dry-run'], ['deploy']]) {
    const { code, out } = await svc(...args, folder)
    assert.is(code, 0)
    assert.match(out, `warning: ${found}`)
  }
})

build('lists the largest inputs of a large build', async () => {
  const noise = Array.from({ length: 80_000 }, (_, i) => Math.sin(i).toString(36)).join('')
  const large = {
    'src/_big.ts': `export const noise = '${noise}'`,
    'src/math.ts': `import { noise } from './_big.ts'\nexport const size = () => noise.length + Number('1')`,
  }
  const folder = projectOf('large', large)
  const { size, largest_inputs } = await json<{ size: number; largest_inputs: { path: string }[] }>(
    'build',
    folder,
  )
  assert.ok(size > 1_000_000, `${size} bytes`)
  assert.is(largest_inputs[0]?.path, 'src/_big.ts')
  const { out } = await svc('build', folder)
  assert.match(out, /largest inputs:\n +[\d,.]+ [KM]iB {2}src\/_big\.ts\n/)
})

build('refuses a folder that does not exist, and a file that cannot be written', async () => {
  const missing = await svc('build', '/nowhere/at/all')
  assert.equal([missing.code, missing.err], [1, 'svc: FOLDER: expected a folder, got /nowhere/at/all\n'])
  const { code, err } = await svc('build', projectOf('x'), '--out', '/nowhere/x.zip')
  assert.is(code, 1)
  assert.match(err, '--out: cannot write /nowhere/x.zip: ENOENT')
})

build.run()

const deploy = suite('svc deploy', { timeoutMs: 60_000 })
deploy.after(() => server.stop())

deploy('creates the project, and uploads nothing that the service has', async () => {
  const folder = projectOf('shop')
  const first = await json<Deployed>('deploy', folder)
  assert.equal([first.uploaded, first.deployed], [true, true])
  assert.equal(first.changes.added, ['math/add', 'orders/onOrder'])
  assert.is((await call(api, 'math/add', 2, 3)).result, 5)

  const again = await json<Deployed>('deploy', folder)
  assert.equal([again.uploaded, again.deployed, again.build_id], [false, false, first.build_id])
  assert.equal(again.functions, first.functions)
  assert.match((await svc('deploy', folder)).out, /^shop: .*unchanged: the build is deployed already\n$/)

  writeProject({ 'src/math.ts': PLAIN.replace('a + b', 'a - b').replace('add', 'subtract') }, folder)
  const { code, out } = await svc('deploy', folder)
  assert.is(code, 0)
  assert.match(out, / {2}\+ math\/subtract\n {2}- math\/add\nshop: .* deployed as .*svc rollback shop/)

  writeProject({ 'src/math.ts': PLAIN }, folder)
  const back = await json<Deployed>('deploy', folder)
  assert.equal([back.uploaded, back.deployed, back.build_id], [false, true, first.build_id])
  assert.is((await buildsOf('shop')).length, 2)
})

deploy('and svc rollback work with the restricted key that the docs create', async () => {
  const docs = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8')
  const [, permissions = ''] = /svc keys create acme\/prod --name ci --permissions '([^']+)'/.exec(docs) ?? []
  const { token } = await json<{ token: string }>(
    'keys',
    'create',
    'local/dev',
    '--name',
    'ci',
    '--permissions',
    permissions,
  )
  const asCi = async (...args: readonly string[]) => {
    const { code, err } = await cli(args, { env: { SVC_URL: server.url, SVC_KEY: token } })
    assert.equal([code, err], [0, ''])
  }
  await asCi('deploy', projectOf('restricted'))
  await asCi('deploy', projectOf('restricted', { 'src/math.ts': `${PLAIN}export const one = () => 1` }))
  await asCi('rollback', 'restricted')
})

deploy('shows with --dry-run what would change, and changes nothing', async () => {
  const folder = projectOf('dry')
  const fresh = await json<Deployed>('deploy', folder, '--dry-run')
  assert.equal([fresh.deployed, fresh.changes.added], [true, ['math/add', 'orders/onOrder']])
  assert.is((await api.send('GET', '/projects/dry')).status, 404)

  const { build_id } = await json<Deployed>('deploy', folder)
  writeProject({ 'src/orders.ts': HANDLER.replace(`'order'`, `'order:paid'`), 'src/b.ts': PLAIN }, folder)
  rmSync(join(folder, 'src/math.ts'))
  const { changes } = await json<Deployed>('deploy', folder, '--dry-run')
  assert.equal(changes, { added: ['b/add'], removed: ['math/add'], changed: ['orders/onOrder'] })
  assert.equal(
    (await buildsOf('dry')).map((each) => [each.build_id, each.deployed]),
    [[build_id, true]],
  )
  assert.match(
    (await svc('deploy', folder, '--dry-run')).out,
    / {2}~ orders\/onOrder\n.*\ndry: .* nothing was changed\n/,
  )
})

deploy('asks before it removes all handlers, and needs --yes without a terminal', async () => {
  const folder = projectOf('losing')
  const { build_id } = await json<Deployed>('deploy', folder)
  rmSync(join(folder, 'src/orders.ts'))
  const { code, err } = await svc('deploy', folder)
  assert.equal(
    [code, err],
    [
      1,
      'svc: Remove all handlers of losing: nothing starts its functions any more? Repeat the command with --yes\n',
    ],
  )
  assert.match((await svc('deploy', folder, '--dry-run')).out, 'a deployment removes all handlers')
  assert.is((await api.get<Build>('/projects/losing/builds/deployed')).build_id, build_id)
  const { changes } = await json<Deployed>('deploy', folder, '--yes')
  assert.equal(changes.removed, ['orders/onOrder'])
})

deploy('reports the refusal of the service', async () => {
  const folder = projectOf('refused')
  const { code, err } = await cli(['deploy', folder], { env: { ...given.env, SVC_API_KEY: 'wrong' } })
  assert.is(code, 1)
  assert.match(err, /^svc: .+\n$/)
  const name = await svc('deploy', folder, '--project', '../x')
  assert.equal([name.code, name.err.startsWith('svc: --project: expected a name')], [2, true])
})

deploy('sends the whole build and reports its progress', async () => {
  await api.post('/projects', { name: 'progress' })
  const { zip, sha256 } = await bundleOf(projectOf('progress'))
  const reports: (readonly [number, number])[] = []
  const client = createClient({ url: api.url, token: api.key })
  const onProgress = (sent: number, total: number) => void reports.push([sent, total])
  const { size, hash } = await uploadBuild(client, { project: 'progress', zip, sha256, onProgress })
  assert.equal([size, hash], [zip.length, sha256])
  const [sent, total] = reports.at(-1) ?? [0, 0]
  assert.is(sent, total)
  assert.ok(total > zip.length)
})

deploy('mentions svc rollback only if there is a build to return to', async () => {
  const { out } = await svc('deploy', projectOf('fresh'))
  assert.match(out, /\nfresh: .* deployed as [0-9a-f-]{36}\n$/)
})

deploy('is undone by svc rollback, which a second one undoes', async () => {
  const folder = projectOf('rolling')
  const first = await json<Deployed>('deploy', folder)
  const none = await svc('rollback', 'rolling')
  assert.equal(
    [none.code, none.err],
    [1, 'svc: rolling has no build before the deployed one; name one with --to\n'],
  )
  writeProject({ 'src/math.ts': PLAIN.replace('add', 'plus') }, folder)
  const second = await json<Deployed>('deploy', folder)
  writeProject({ 'src/math.ts': PLAIN.replace('add', 'sum') }, folder)
  await json<Deployed>('deploy', folder)

  const back = await json<Deployed>('rollback', 'rolling')
  assert.equal(
    [back.build_id, back.changes.added, back.changes.removed],
    [second.build_id, ['math/plus'], ['math/sum']],
  )
  const { code, out } = await svc('rollback', 'rolling', '--to', first.build_id)
  assert.equal([code, out.endsWith(`rolling: build ${first.build_id} is deployed\n`)], [0, true])
  assert.is((await json<Deployed>('rollback', 'rolling')).build_id, second.build_id)
  assert.is((await svc('rollback', 'nothing')).err, 'svc: No project nothing\n')
  assert.is((await svc('rollback', 'rolling', '--to', 'latest')).code, 2)
})

deploy.run()
