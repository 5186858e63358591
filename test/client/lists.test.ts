import * as assert from 'uvu/assert'
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

lists.run()
