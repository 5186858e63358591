import * as assert from 'uvu/assert'
import { buildsOf } from '../../src/cli/deployBundle.ts'
import { createClient } from '../../src/client/index.ts'
import { suite } from '../support/suite.ts'

const lists = suite('a list of the client')

lists('continues a search that has not looked at everything', async () => {
  const pages = new Map([
    ['?fn=a%2Fb&limit=100&offset=0', { ids: ['3', '2'], total: 2, searched_to: 'X/1' }],
    ['?fn=a%2Fb&before=X%2F1&limit=100&offset=0', { ids: [], total: 0, searched_to: 'X/0' }],
    ['?fn=a%2Fb&before=X%2F0&limit=100&offset=0', { ids: ['1'], total: 1, searched_to: undefined }],
  ])
  const fetch = async (input: string | URL | Request) => {
    const { search } = new URL(input instanceof Request ? input.url : input)
    const page = pages.get(search)
    assert.ok(page, `unexpected ${search}`)
    pages.delete(search)
    const { ids, ...rest } = page ?? { ids: [] }
    const pagination = { ...rest, limit: 100, offset: 0, has_more: false }
    return Response.json({ data: ids.map((run_id) => ({ run_id })), pagination })
  }
  const client = createClient({ url: 'http://localhost:1', token: 'k', fetch })
  const found = await Array.fromAsync(client.runs.all({ fn: 'a/b' }))
  assert.equal(
    found.map(({ run_id }) => run_id),
    ['3', '2', '1'],
  )
  assert.is(pages.size, 0)
})

/** A client of a service with a list whose items have the given names, in their order, and `next` if it has cursors. */
const clientOf = (id: string, names: string[], cursor?: 'before' | 'after') => {
  const fetch = async (input: string | URL | Request) => {
    const { searchParams } = new URL(input instanceof Request ? input.url : input)
    const [limit = 0, offset = 0] = ['limit', 'offset'].map((name) => Number(searchParams.get(name)))
    const begin = cursor && searchParams.get(cursor)
    const isLeft = (name: string) => !begin || (cursor === 'before' ? name < begin : name > begin)
    const left = names.filter(isLeft)
    const page = left.slice(offset, offset + limit)
    const total = left.length
    const has_more = offset + page.length < total
    const pagination = { total, limit, offset, has_more, ...(cursor && has_more && { next: page.at(-1) }) }
    return Response.json({ data: page.map((name) => ({ [id]: name, file_id: name })), pagination })
  }
  return createClient({ url: 'http://localhost:1', token: 'k', fetch })
}

const named = (from: number, to: number) => Array.from({ length: to - from }, (_, n) => `n${from + n}`)

for (const [name, kind, id] of [
  ['runs', 'start', 'run_id'],
  ['events', 'are published', 'event_id'],
] as const)
  lists(`of all ${name} leaves out those that ${kind} meanwhile, and repeats none`, async () => {
    const names = named(1000, 1400).toReversed()
    const client = clientOf(id, names, 'before')
    const found: string[] = []
    for await (const item of client[name].all()) {
      found.push((item as unknown as Record<string, string>)[id] ?? '')
      if (found.length % 100 === 1)
        names.unshift(...named(1000 + names.length, 1250 + names.length).toReversed())
    }
    assert.equal(found, named(1000, 1400).toReversed())
  })

lists('of all files has each of them while they are removed', async () => {
  const names = named(100, 350)
  const client = clientOf('path', names, 'after')
  for await (const { path } of client.files.all()) names.splice(names.indexOf(path), 1)
  assert.equal(names, [])
})

lists('without cursors repeats nothing that is added meanwhile', async () => {
  const names = named(1000, 1400).toReversed()
  const client = clientOf('build_id', names)
  const found: string[] = []
  for await (const { build_id } of buildsOf(client, 'p', {})) {
    found.push(build_id)
    if (found.length === 1) names.unshift(...named(1400, 1650).toReversed())
  }
  assert.is(new Set(found).size, found.length)
  assert.equal(
    found.filter((name) => name < 'n1400'),
    named(1000, 1400).toReversed(),
  )
})

lists.run()
