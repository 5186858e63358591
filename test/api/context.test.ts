import { createHash } from 'node:crypto'
import * as assert from 'uvu/assert'
import { newId } from '../../src/ids.ts'
import { deploy } from '../support/build.ts'
import type { Api } from '../support/http.ts'
import { startWithOther } from '../support/server.ts'
import { suite } from '../support/suite.ts'

interface Variable {
  readonly key: string
  readonly description: string
  readonly created_at: string
  readonly updated_at: string
}

const server = await startWithOther()
const { api, other } = server

const hash = (text: string): string => createHash('sha256').update(text).digest('hex')

/** Values of variables are masked in results, so the functions return their hash. */
const READER = {
  'vars.js': `import { createHash } from 'node:crypto'
    import { context } from 'svc'
    export const hash = (text) => createHash('sha256').update(text).digest('hex')
    export const refused = (key) => context(key).then(hash, ({ code, message }) => ({ code, message }))`,
}

/** A project of its own with one that reads its variables. */
const project = async (): Promise<string> => {
  const name = `p-${newId()}`
  await deploy(api, name, READER)
  return name
}
const create = (name: string, key: string, value: string, description = ''): Promise<Variable> =>
  api.post(`/projects/${name}/context`, { key, value, description })
const put = async (name: string, key: string, body: object): Promise<Variable> => {
  const { status, json, text } = await api.send('PUT', `/projects/${name}/context/${key}`, { body })
  assert.is(status, 200, text)
  return (json as { data: Variable }).data
}
const listOf = async (name: string, query = ''): Promise<Variable[]> =>
  (await api.page<Variable>(`/projects/${name}/context${query}`)).data
const read = async (name: string, key: string): Promise<unknown> => {
  const { project_id } = await api.get<{ project_id: string }>(`/projects/${name}`)
  const evaluated = await api.post<{ result: unknown }>(`/projects/${project_id}/eval`, {
    code: `await run('vars/refused', ${JSON.stringify(key)})`,
  })
  return evaluated.result
}

const variables = suite('context variables')

variables('are created with 201 and the metadata of SPEC.md, without the value', async () => {
  const name = await project()
  const { status, json, text } = await api.send('POST', `/projects/${name}/context`, {
    body: { key: 'STRIPE_KEY', value: 'planted', description: 'From Stripe' },
  })
  const { created_at, ...rest } = (json as { data: Variable }).data
  assert.is(status, 201)
  assert.is(new Date(created_at).toISOString(), created_at)
  assert.equal(rest, { key: 'STRIPE_KEY', description: 'From Stripe', updated_at: created_at })
  assert.not(text.includes('planted'))
})

variables('are listed newest first, by pages, without values', async () => {
  const name = await project()
  for (const key of ['a', 'b', 'c']) await create(name, key, `value of ${key}`, key)
  const listed = await listOf(name)
  assert.equal(
    listed.map(({ key }) => key),
    ['c', 'b', 'a'],
  )
  assert.equal(Object.keys(listed[0] ?? {}).toSorted(), ['created_at', 'description', 'key', 'updated_at'])
  const page = await api.page<Variable>(`/projects/${name}/context?limit=1&offset=1`)
  assert.equal(page.pagination, { total: 3, limit: 1, offset: 1, has_more: true })
  assert.equal(page.data, [listed[1]])
})

variables('of the same key are 409 context_exists, even at once', async () => {
  const name = await project()
  await create(name, 'KEY', 'x')
  const { status, code, message } = await api.refused('POST', `/projects/${name}/context`, {
    key: 'KEY',
    value: 'planted',
  })
  assert.equal([status, code], [409, 'context_exists'])
  assert.ok(message.includes('"KEY"') && !message.includes('planted'))
  const body = { key: 'RACE', value: 'x' }
  const answers = await Promise.all(
    [1, 2, 3, 4, 5].map(() => api.send('POST', `/projects/${name}/context`, { body })),
  )
  assert.equal(answers.map((answer) => answer.status).toSorted(), [201, 409, 409, 409, 409])
})

variables('of the same key may be in different projects, each with its value', async () => {
  const [one, two] = [await project(), await project()]
  await create(one, 'KEY', 'of one')
  await create(two, 'KEY', 'of two')
  assert.equal([await read(one, 'KEY'), await read(two, 'KEY')], ['of one', 'of two'].map(hash))
})

variables('are updated with 200, metadata only', async () => {
  const name = await project()
  const before = await create(name, 'KEY', 'old', 'first')
  const after = await put(name, 'KEY', { value: 'planted', description: 'second' })
  assert.equal([after.key, after.description, after.created_at], ['KEY', 'second', before.created_at])
  assert.ok(after.updated_at >= before.updated_at)
  assert.not(JSON.stringify(after).includes('planted'))
  assert.equal(await listOf(name), [after])
  assert.is((await put(name, 'KEY', { value: 'x' })).description, 'second')
})

variables('are deleted with 204, and the key is free', async () => {
  const name = await project()
  await create(name, 'KEY', 'old')
  const { status, text } = await api.send('DELETE', `/projects/${name}/context/KEY`)
  assert.equal([status, text], [204, ''])
  assert.equal(await listOf(name), [])
  assert.is((await api.refused('DELETE', `/projects/${name}/context/KEY`)).status, 404)
  assert.is((await api.refused('PUT', `/projects/${name}/context/KEY`, { value: 'x' })).status, 404)
  assert.equal(((await read(name, 'KEY')) as { code: string }).code, 'not_found')
  await create(name, 'KEY', 'new')
  assert.is(await read(name, 'KEY'), hash('new'))
})

for (const key of ['1a', 7, undefined]) {
  variables(`cannot have the key ${JSON.stringify(key)?.slice(0, 20)}`, async () => {
    const name = 'keys'
    await api.post('/projects', { name }).catch(() => {})
    const refusal = await api.refused('POST', `/projects/${name}/context`, { key, value: 'planted' })
    assert.equal([refusal.status, refusal.code], [400, 'bad_request'])
    assert.ok(refusal.message.startsWith('key: ') && !refusal.message.includes('planted'), refusal.message)
  })
}

variables('whose value is not text are refused without revealing it', async () => {
  const name = await project()
  await create(name, 'KEY', 'x')
  const halfOfPair = 'planted\ud800' // UTF-8 has no such character, so functions would read another value
  for (const value of [undefined, null, 7, { a: 'planted' }, ['planted'], halfOfPair]) {
    for (const [method, path, body] of [
      ['POST', `/projects/${name}/context`, { key: 'NEW', value }],
      ['PUT', `/projects/${name}/context/KEY`, { value }],
    ] as const) {
      const refusal = await api.refused(method, path, body)
      assert.equal([refusal.status, refusal.code], [400, 'bad_request'])
      assert.ok(refusal.message.startsWith('value: ') && !refusal.message.includes('planted'))
    }
  }
  const { message } = await api.refused('POST', `/projects/${name}/context`, ['planted'])
  assert.not(message.includes('planted'))
})

variables('of another environment or an unknown project do not exist (I7)', async () => {
  const name = await project()
  await create(name, 'KEY', 'x')
  const { project_id } = await api.get<{ project_id: string }>(`/projects/${name}`)
  const tries = async (as: Api, id: string) => {
    const refusals = [
      await as.refused('GET', `/projects/${id}/context`),
      await as.refused('POST', `/projects/${id}/context`, { key: 'K2', value: 'x' }),
      await as.refused('PUT', `/projects/${id}/context/KEY`, { value: 'x' }),
      await as.refused('DELETE', `/projects/${id}/context/KEY`),
    ]
    return refusals.map(({ status, code, message }) => [status, code, message.replace(id, 'ID')])
  }
  const unknown = await tries(other, newId())
  assert.equal(unknown[0]?.slice(0, 2), [404, 'not_found'])
  assert.equal(await tries(other, project_id), unknown)
  assert.equal(await listOf(name).then((all) => all.length), 1)
})

variables('are read by functions, and a missing one is not_found', async () => {
  const name = await project()
  await create(name, 'KEY', 'secret text')
  assert.is(await read(name, 'KEY'), hash('secret text'))
  assert.equal(await read(name, 'NONE'), { code: 'not_found', message: 'No context variable "NONE"' })
})

variables('are seen by a running function at its next call after an update', async () => {
  const name = await project()
  await create(name, 'KEY', 'before')
  const { project_id } = await api.get<{ project_id: string }>(`/projects/${name}`)
  const evaluate = (code: string) => api.post<{ result: unknown }>(`/projects/${project_id}/eval`, { code })
  await create(name, 'GO', 'no')
  const running = evaluate(`
    const first = await context('KEY')
    while ((await context('GO')) !== 'yes') await new Promise((resolve) => setTimeout(resolve, 10))
    ;[first, ns.vars.hash(await context('KEY'))]`)
  await put(name, 'KEY', { value: 'after' })
  await put(name, 'GO', { value: 'yes' })
  assert.is(((await running).result as string[])[1], hash('after'))
})

variables('are deleted with their project, and a new project of the same name has none', async () => {
  const name = await project()
  await create(name, 'KEY', 'x')
  await api.remove(`/projects/${name}`)
  await deploy(api, name, READER)
  assert.equal(await listOf(name), [])
  assert.equal(((await read(name, 'KEY')) as { code: string }).code, 'not_found')
  await create(name, 'KEY', 'new')
  assert.is(await read(name, 'KEY'), hash('new'))
})

variables.after(() => server.stop())
variables.run()
