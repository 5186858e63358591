import * as assert from 'uvu/assert'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'

const server = await startServer()
const { api } = server
for (const name of ['own', 'other']) await api.post('/projects', { name })

const body = suite('a body with fields that the route does not have')
body.after(() => server.stop())

body('does not name the project: the path does, to which the permission was checked', async () => {
  await api.send('POST', '/projects/own/context', { body: { key: 'a', value: '1', project: 'other' } })
  await api.send('PUT', '/projects/own/context/a', { body: { value: '2', project: 'other', key: 'b' } })
  assert.is((await api.page('/projects/other/context')).data.length, 0)
  assert.is((await api.page('/projects/own/context')).data.length, 1)
  await api.send('PATCH', '/projects/own', { body: { name: 'renamed', project: 'other' } })
  assert.is((await api.send('GET', '/projects/other')).status, 200)
})

body('does not name the issuer of a credential', async () => {
  const issuer = { kind: 'api-key', api_key_id: 'x' }
  const { status } = await api.send('POST', '/sessions', { body: { permissions: {}, issuer } })
  assert.is(status, 201)
})

body.run()
