import * as assert from 'uvu/assert'
import { isId, newId } from '../../src/ids.ts'
import { deploy, handle, type Project, publish, runsOf, upload } from '../support/build.ts'
import { startWithOther } from '../support/server.ts'
import { suite } from '../support/suite.ts'

const server = await startWithOther()
const { api, other } = server

const create = (name: string) => api.post<Project>('/projects', { name })

const projects = suite('projects')

projects('are created with 201 and all fields of SPEC.md', async () => {
  const { status, json } = await api.send('POST', '/projects', { body: { name: 'first' } })
  const { project_id, env_id, created_at, ...rest } = (json as { data: Project }).data
  assert.is(status, 201)
  assert.ok(isId(project_id) && isId(env_id))
  assert.is(new Date(created_at).toISOString(), created_at)
  assert.equal(rest, { name: 'first', network: null, active: true, updated_at: created_at })
})

projects('are found by name and by id', async () => {
  const project = await create('found')
  assert.equal(await api.get('/projects/found'), project)
  assert.equal(await api.get(`/projects/${project.project_id}`), project)
})

projects('are listed newest first', async () => {
  const made = [await create('a'), await create('b'), await create('c')].toReversed()
  assert.equal((await api.page('/projects?limit=3')).data, made)
})

projects('of the same name are refused, also when they are created at once', async () => {
  await create('taken')
  const { status, code, message } = await api.refused('POST', '/projects', { name: 'taken' })
  assert.equal([status, code], [409, 'project_exists'])
  assert.match(message, '"taken"')
  const answers = await Promise.all(
    [1, 2, 3, 4, 5].map(() => api.send('POST', '/projects', { body: { name: 'race' } })),
  )
  assert.equal(answers.map((answer) => answer.status).toSorted(), [201, 409, 409, 409, 409])
})

projects('of the same name may be in different environments', async () => {
  const ours = await create('both')
  const theirs = await other.post<Project>('/projects', { name: 'both' })
  assert.is.not(theirs.project_id, ours.project_id)
  assert.equal(await other.get('/projects/both'), theirs)
})

for (const name of ['', '-a', '.a', '_a', 'a b', 'a/b', 'ü', 'a'.repeat(64), 'a\n', 7, null, undefined]) {
  projects(`cannot be called ${JSON.stringify(name)?.slice(0, 20)}`, async () => {
    await create('renamable').catch(() => {})
    for (const [method, path] of [
      ['POST', '/projects'],
      ['PATCH', '/projects/renamable'],
    ] as const) {
      const { status, code, message } = await api.refused(method, path, { name })
      assert.equal([status, code], [400, 'bad_request'])
      assert.match(message, /^(?:name: |body: expected at least one of name, network)/)
    }
  })
}

for (const name of ['A', '0', 'a.b_c-d', 'a'.repeat(63)]) {
  projects(`may be called ${name.slice(0, 20)}`, async () => assert.is((await create(name)).name, name))
}

projects('are renamed, and the old name is available', async () => {
  const { project_id, created_at } = await create('old')
  const renamed = await api.patch<Project>('/projects/old', { name: 'new' })
  assert.equal([renamed.project_id, renamed.name, renamed.created_at], [project_id, 'new', created_at])
  assert.ok(renamed.updated_at >= created_at)
  assert.equal(await api.get('/projects/new'), renamed)
  assert.is((await api.refused('GET', '/projects/old')).status, 404)
  assert.is.not((await create('old')).project_id, project_id)
})

projects('are renamed to their own name without effect', async () => {
  const project = await create('same')
  assert.equal(await api.patch('/projects/same', { name: 'same' }), project)
})

projects(
  'that are renamed several times at once keep one of the names, and the others are available',
  async () => {
    const { project_id } = await create('several')
    const names = ['several-1', 'several-2', 'several-3']
    const answers = await Promise.all(
      names.map((name) => api.send('PATCH', `/projects/${project_id}`, { body: { name } })),
    )
    assert.equal(
      answers.map(({ status }) => status),
      [200, 200, 200],
    )
    const { name: kept } = await api.get<Project>(`/projects/${project_id}`)
    for (const name of ['several', ...names])
      if (name === kept) assert.is((await api.refused('POST', '/projects', { name })).code, 'project_exists')
      else await create(name)
  },
)

projects('have a network, which is set at creation and changed later, in its canonical form', async () => {
  const network = ['API.Example.com.', '*.zone.example:443', '[2001:DB8::1]:80', 'api.example.com']
  const canonical = ['api.example.com', '*.zone.example:443', '[2001:db8::1]:80']
  const created = await api.post<Project>('/projects', { name: 'networked', network })
  assert.equal(created.network, canonical)
  assert.equal((await api.get<Project>('/projects/networked')).network, canonical)
  const changed = await api.patch<Project>('/projects/networked', { name: 'moved', network: [] })
  assert.equal([changed.name, changed.network], ['moved', []])
  assert.is((await api.patch<Project>('/projects/moved', { network: null })).network, null)
  assert.is((await api.patch<Project>('/projects/moved', { name: 'kept' })).network, null)
})

for (const [entry, shown] of [
  ['https://a.example', '"https://a.example"'],
  ['*', '"*"'],
  ['10.0.0.0/8', '"10.0.0.0/8"'],
  ['0x7f.1', '"0x7f.1"'],
  ['a.example:0', '"a.example:0"'],
  ['', '""'],
] as const)
  projects(`name the wrong entry ${shown} of a network, and change nothing`, async () => {
    await create('unchanged').catch(() => {})
    const before = await api.get<Project>('/projects/unchanged')
    const network = ['a.example', entry]
    for (const [method, path] of [
      ['POST', '/projects'],
      ['PATCH', '/projects/unchanged'],
    ] as const) {
      const { status, message } = await api.refused(method, path, { name: 'other', network })
      assert.is(status, 400)
      assert.ok(message.startsWith('network/1: ') && message.includes(shown), message)
    }
    assert.equal(await api.get('/projects/unchanged'), before)
  })

projects('name the types that their network may have', async () => {
  const { message } = await api.refused('POST', '/projects', { name: 'wrong', network: 'all' })
  assert.is(message, 'network: expected array or null, got "all"')
})

projects('have at most 100 entries in their network', async () => {
  const network = Array.from({ length: 101 }, (_, index) => `a${index}.example`)
  const { status, message } = await api.refused('POST', '/projects', { name: 'long', network })
  assert.is(status, 400)
  assert.match(message, /^network: must not have more than 100 items/)
  const most = await api.post<Project>('/projects', { name: 'long', network: network.slice(1) })
  assert.is(most.network?.length, 100)
})

projects('cannot be renamed to a name that is taken', async () => {
  await create('mine')
  await create('yours')
  assert.is((await api.refused('PATCH', '/projects/mine', { name: 'yours' })).code, 'project_exists')
  assert.is((await api.get<Project>('/projects/mine')).name, 'mine')
})

projects('keep their functions under a new name', async () => {
  await deploy(api, 'before', {
    'f.js': `import { fn } from 'svc'\nexport const on = fn({ 'on-event': 'renamed' }, () => 1)`,
  })
  await api.patch('/projects/before', { name: 'after' })
  assert.equal((await handle(api, 'renamed')).project_name, 'after')
})

projects('that are deleted do not exist on any route, and their name is available', async () => {
  const { project_id } = await create('doomed')
  const code = `import { fn } from 'svc'\nexport const on = fn({ 'on-event': 'doomed' }, () => 1)`
  const { build_id } = await deploy(api, 'doomed', { 'f.js': code })
  const run = await handle(api, 'doomed')
  const removed = await api.send('DELETE', '/projects/doomed')
  assert.equal([removed.status, removed.text], [204, ''])

  for (const project of ['doomed', project_id]) {
    const paths = [
      '',
      '/builds',
      `/builds/${build_id}`,
      `/builds/${build_id}/download`,
      '/builds/deployed',
      '/builds/live',
    ]
    for (const path of [...paths, '/event-handlers', '/schedules', '/webhooks']) {
      assert.is((await api.refused('GET', `/projects/${project}${path}`)).status, 404, path)
    }
    assert.is((await api.refused('PATCH', `/projects/${project}`, { name: 'x' })).status, 404)
    assert.is((await api.refused('DELETE', `/projects/${project}`)).status, 404)
    assert.is((await api.refused('POST', `/projects/${project}/builds/${build_id}/deploy`)).status, 404)
    assert.is((await api.refused('POST', `/projects/${project}/eval`, { code: '1' })).status, 404)
    assert.is((await upload(api, project, { 'f.js': '' })).status, 404)
  }
  assert.equal(
    (await api.page<{ build_id: string }>('/builds')).data.filter((build) => build.build_id === build_id),
    [],
  )
  const { event_id } = await publish(api, 'doomed')
  await handle(api, 'renamed')
  assert.equal(await runsOf(api, event_id), [])
  assert.equal(await api.get(`/runs/${run.run_id}`), run) // its runs remain readable
  assert.is.not((await create('doomed')).project_id, project_id)
})

projects('of another environment do not exist', async () => {
  const { project_id } = await other.post<Project>('/projects', { name: 'theirs' })
  for (const project of [project_id, 'theirs', newId()]) {
    for (const [method, body] of [['GET'], ['PATCH', { name: 'x' }], ['DELETE']] as const) {
      const { status, message } = await api.refused(method, `/projects/${project}`, body)
      assert.equal([status, message], [404, `No project "${project}"`])
    }
  }
  assert.is((await other.get<Project>('/projects/theirs')).project_id, project_id)
})

projects(
  'may be named like the id of a project of another environment, and are found by that name',
  async () => {
    const { project_id: name } = await other.post<Project>('/projects', { name: 'foreign' })
    const created = await create(name)
    assert.equal(await api.get(`/projects/${name}`), created)
    assert.is((await api.page(`/runs?project=${name}`)).pagination.total, 0)
    assert.is((await other.get<Project>(`/projects/${name}`)).name, 'foreign')
  },
)

projects.after(() => server.stop())
projects.run()
