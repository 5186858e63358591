import { createHash } from 'node:crypto'
import * as assert from 'uvu/assert'
import { newId } from '../../src/ids.ts'
import {
  type Build,
  type BuildUpload,
  call,
  deploy,
  type DeployedBuild,
  type Files,
  upload,
} from '../support/build.ts'
import { startWithOther } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { zipBuild } from '../support/zipBuild.ts'

const server = await startWithOther()
const { api, other } = server
await api.post('/projects', { name: 'shop' })

const filesOf = (n: number, ns = 'v'): Files => ({ [`${ns}.js`]: `export const version = () => ${n}` })
const uploaded = async (project: string, files: Files, fields = {}): Promise<BuildUpload> => {
  const { status, json } = await upload(api, project, files, fields)
  assert.is(status, 201)
  return (json as { data: BuildUpload }).data
}

const builds = suite('builds')

builds('of a new project: none is deployed, none is live', async () => {
  for (const which of ['deployed', 'live']) {
    const { status, code } = await api.refused('GET', `/projects/shop/builds/${which}`)
    assert.equal([status, code], [404, 'not_found'])
  }
  assert.equal((await api.page('/projects/shop/builds')).data, [])
})

builds('are read by id, with all fields of SPEC.md', async () => {
  const {
    created_at,
    functions: _,
    ignored: __,
    warnings: ___,
    ...stored
  } = await uploaded('shop', filesOf(1))
  const build = await api.get<Build>(`/projects/shop/builds/${stored.build_id}`)
  assert.equal(build, {
    ...stored,
    build_type: 'release',
    deployed: false,
    active: true,
    created_at,
    updated_at: created_at,
  })
  assert.equal(await api.get(`/projects/${build.project_id}/builds/${build.build_id}`), build)
})

builds('are downloaded as they were uploaded', async () => {
  const zip = await zipBuild(filesOf(2))
  const { json } = await upload(api, 'shop', zip)
  const { build_id } = (json as { data: BuildUpload }).data
  const response = await fetch(`${server.url}/v1/projects/shop/builds/${build_id}/download`, {
    headers: { Authorization: `Bearer ${api.key}` },
  })
  assert.is(response.status, 200)
  assert.is(response.headers.get('content-type'), 'application/zip')
  assert.is(response.headers.get('content-length'), String(zip.bytes.length))
  assert.match(response.headers.get('content-disposition') ?? '', 'attachment')
  assert.is(
    createHash('sha256')
      .update(await response.bytes())
      .digest('hex'),
    zip.hash,
  )
})

builds('are listed newest first, in their project and in the environment with its name', async () => {
  await api.post('/projects', { name: 'second' })
  const ids = [
    (await uploaded('shop', filesOf(3))).build_id,
    (await uploaded('second', filesOf(3))).build_id,
    (await uploaded('shop', filesOf(4))).build_id,
  ].toReversed()
  const all = await api.page<Build & { project_name: string }>('/builds?limit=3')
  assert.equal(
    all.data.map(({ build_id, project_name }) => [build_id, project_name]),
    [
      [ids[0], 'shop'],
      [ids[1], 'second'],
      [ids[2], 'shop'],
    ],
  )
  const { data } = await api.page<Build>('/projects/shop/builds?limit=2')
  assert.equal(
    data.map(({ build_id }) => build_id),
    [ids[0], ids[2]],
  )
  assert.not('project_name' in (data[0] ?? {}))
})

builds('of a project are found by their hash', async () => {
  await api.post('/projects', { name: 'hashed' })
  const zip = await zipBuild(filesOf(6))
  const same = [
    (await uploaded('hashed', filesOf(6))).build_id,
    (await uploaded('hashed', filesOf(6), { build_id: newId() })).build_id,
    (await uploaded('hashed', filesOf(6), { live: 'true', build_id: newId() })).build_id,
  ].toReversed()
  await uploaded('hashed', filesOf(7))
  await uploaded('shop', filesOf(6), { build_id: newId() })
  const found = async (query: string) => {
    const { data, pagination } = await api.page<Build>(`/projects/hashed/builds?${query}`)
    return [data.map(({ build_id }) => build_id), pagination.total]
  }
  assert.equal(await found(`hash=${zip.hash}`), [same, 3])
  assert.equal(await found(`hash=${zip.hash.toUpperCase()}`), [same, 3])
  assert.equal(await found(`hash=${zip.hash}&limit=1&offset=1`), [same.slice(1, 2), 3])
  assert.equal(await found(`hash=${'0'.repeat(64)}`), [[], 0])
  const now = new Date(Date.now() + 1000).toISOString()
  assert.equal(await found(`hash=${zip.hash}&as_of=${now}`), [same, 3])
  const { status, code } = await api.refused('GET', '/projects/hashed/builds?hash=abc')
  assert.equal([status, code], [400, 'bad_request'])
})

builds('of another project or environment do not exist', async () => {
  const { build_id, project_id } = await uploaded('shop', filesOf(5))
  await api.post('/projects', { name: 'third' })
  await other.post('/projects', { name: 'shop' })
  for (const id of [build_id, newId(), 'nothing']) {
    for (const [method, path] of [
      ['GET', ''],
      ['GET', '/download'],
      ['POST', '/deploy'],
    ] as const) {
      assert.is((await api.refused(method, `/projects/third/builds/${id}${path}`)).message, `No build ${id}`)
      assert.is((await other.refused(method, `/projects/shop/builds/${id}${path}`)).message, `No build ${id}`)
      assert.is((await other.refused(method, `/projects/${project_id}/builds/${id}${path}`)).status, 404)
    }
  }
  assert.equal((await other.page('/builds')).data, [])
})

builds.run()

const deploying = suite('deploying')

deploying('marks the build, and no other build', async () => {
  const [first, second] = [await uploaded('shop', filesOf(1)), await uploaded('shop', filesOf(2))]
  const path = (build_id: string) => `/projects/shop/builds/${build_id}`
  const {
    changes: _,
    warnings: __,
    ...deployed
  } = await api.post<DeployedBuild>(`${path(first.build_id)}/deploy`)
  assert.equal([deployed.build_id, deployed.deployed], [first.build_id, true])
  assert.equal(await api.get('/projects/shop/builds/deployed'), deployed)

  await api.post(`${path(second.build_id)}/deploy`)
  assert.is((await api.get<Build>(path(first.build_id))).deployed, false)
  assert.is((await api.get<Build>('/projects/shop/builds/deployed')).build_id, second.build_id)
  const { data } = await api.page<Build>('/projects/shop/builds?limit=100')
  assert.equal(
    data.filter((build) => build.deployed).map(({ build_id }) => build_id),
    [second.build_id],
  )
})

deploying('twice has the effect of one deployment', async () => {
  const { build_id } = await uploaded('shop', filesOf(1))
  const first = await api.post<Build>(`/projects/shop/builds/${build_id}/deploy`)
  assert.equal(await api.post(`/projects/shop/builds/${build_id}/deploy`), first)
})

deploying('returns the difference to the build that was deployed before', async () => {
  const changesOf = async (code: string) => {
    const { build_id } = await uploaded('changing', { 'm.js': `import { fn } from 'svc'\n${code}` })
    return (await api.post<DeployedBuild>(`/projects/changing/builds/${build_id}/deploy`)).changes
  }
  await api.post('/projects', { name: 'changing' })
  const [kept, gone] = ['export const kept = () => 1', 'export const gone = () => 1']
  const onEvent = (type: string) => `export const on = fn({ 'on-event': '${type}' }, () => 1)`
  assert.equal(await changesOf([kept, gone, onEvent('a')].join('\n')), {
    added: ['m/gone', 'm/kept', 'm/on'],
    removed: [],
    changed: [],
  })
  const next = [kept, onEvent('b'), 'export const more = () => 1'].join('\n')
  assert.equal(await changesOf(next), { added: ['m/more'], removed: ['m/gone'], changed: ['m/on'] })
  assert.equal(await changesOf(next), { added: [], removed: [], changed: [] })
})

deploying('takes effect from the next request on', async () => {
  for (const n of [1, 2, 3]) {
    const { build_id } = await deploy(api, 'runs', filesOf(n, 'r'))
    const run = await call(api, 'r/version')
    assert.equal([run.result, run.build_id], [n, build_id])
  }
})

deploying('can return to an earlier build', async () => {
  const { build_id } = await deploy(api, 'runs', filesOf(7, 'r'))
  await deploy(api, 'runs', filesOf(8, 'r'))
  await api.post(`/projects/runs/builds/${build_id}/deploy`)
  assert.is((await call(api, 'r/version')).result, 7)
})

deploying('takes live builds too', async () => {
  const live = await uploaded('shop', filesOf(1), { live: 'true' })
  const build = await api.get<Build>('/projects/shop/builds/live')
  assert.equal([build.build_id, build.build_type, build.deployed], [live.build_id, 'live', false])
  const deployed = await api.post<Build>(`/projects/shop/builds/${live.build_id}/deploy`)
  assert.equal([deployed.build_type, deployed.deployed], ['live', true])
  const later = await uploaded('shop', filesOf(2), { live: 'true' })
  assert.is((await api.get<Build>('/projects/shop/builds/live')).build_id, later.build_id)
})

deploying('protects a build from deletion, and other builds can be deleted', async () => {
  const { build_id: first } = await deploy(api, 'deleting', filesOf(1))
  const { build_id: second } = await deploy(api, 'deleting', filesOf(2))
  assert.is((await api.refused('DELETE', `/projects/deleting/builds/${second}`)).code, 'conflict')
  await api.remove(`/projects/deleting/builds/${first}`)
  assert.is((await api.refused('GET', `/projects/deleting/builds/${first}`)).code, 'not_found')
  assert.is((await api.refused('POST', `/projects/deleting/builds/${first}/deploy`)).code, 'not_found')
  const { data } = await api.page<Build>('/projects/deleting/builds')
  assert.equal(
    data.map(({ build_id }) => build_id),
    [second],
  )
})

deploying.run()

/** A build with these webhooks of the service `pay`; `many` adds functions until the list is over 64 KiB. */
const hooks = (paths: readonly string[], { many = false } = {}): Files => ({
  'hooks.js': [
    `import { fn } from 'svc'`,
    ...paths.map(
      (path, i) =>
        `export const hook${i} = fn({ webhook: { service: 'pay', path: '${path}' } }, () => '${path}')`,
    ),
    ...(many
      ? Array.from({ length: 1200 }, (_, i) => `export const ${'f'.repeat(60)}${i} = () => ${i}`)
      : []),
  ].join('\n'),
})
let count = 0
/** A new project with a build that is uploaded and not deployed; resolves with the path of the build. */
const ready = async (files: Files): Promise<string> => {
  const { name } = await api.post<{ name: string }>('/projects', { name: `hooks-${++count}` })
  return `/projects/${name}/builds/${(await uploaded(name, files)).build_id}`
}
const deployAll = async (paths: readonly string[]) =>
  (await Promise.all(paths.map((path) => api.send('POST', `${path}/deploy`)))).map(({ status }) => status)

const webhooks = suite('a webhook address')

webhooks('is served by one project of an environment: 409 names the webhook and the project', async () => {
  const [first, second] = [await ready(hooks(['/one'])), await ready(hooks(['/one']))]
  await api.post(`${first}/deploy`)
  const { status, code, message } = await api.refused('POST', `${second}/deploy`)
  assert.equal([status, code], [409, 'conflict'])
  assert.match(message, 'POST pay/one')
  assert.match(message, `hooks-${count - 1}`)
})

for (const [what, ...many] of [
  ['the deployed build', true, false],
  ['the new build', false, true],
] as const) {
  webhooks(`is not taken over when the functions of ${what} exceed 64 KiB`, async () => {
    const path = `/many-${what.replaceAll(' ', '-')}`
    const [first, second] = [
      await ready(hooks([path], { many: many[0] })),
      await ready(hooks([path], { many: many[1] })),
    ]
    await api.post(`${first}/deploy`)
    assert.is((await api.refused('POST', `${second}/deploy`)).status, 409)
    const webhooksOf = (build: string) => api.page(`${build.slice(0, build.indexOf('/builds'))}/webhooks`)
    assert.is((await webhooksOf(first)).data.length, 1)
    assert.is((await webhooksOf(second)).data.length, 0)
  })
}

webhooks('is assigned to one of the projects that deploy it at once', async () => {
  const paths = await Promise.all([1, 2, 3, 4].map(() => ready(hooks(['/race']))))
  assert.equal((await deployAll(paths)).toSorted(), [200, 409, 409, 409])
})

webhooks('is available once its project drops it or is deleted', async () => {
  const first = await ready(hooks(['/dropped', '/kept']))
  const project = first.slice(0, first.indexOf('/builds'))
  await api.post(`${first}/deploy`)
  const { build_id } = await uploaded(project.slice('/projects/'.length), hooks(['/kept']))
  await api.post(`${project}/builds/${build_id}/deploy`)
  await api.post(`${await ready(hooks(['/dropped']))}/deploy`)
  assert.is((await api.refused('POST', `${first}/deploy`)).status, 409)
  await api.remove(project)
  await api.post(`${await ready(hooks(['/kept']))}/deploy`)
})

webhooks('may be in several environments', async () => {
  await api.post(`${await ready(hooks(['/both']))}/deploy`)
  await deploy(other, 'theirs', hooks(['/both']))
})

webhooks.after(() => server.stop())
webhooks.run()
