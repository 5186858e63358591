import * as assert from 'uvu/assert'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'

const server = await startServer()

const routes = suite('a path without a route')

const replyTo = async (path: string) => {
  const reply = await fetch(`${server.url}${path}`)
  const { error } = (await reply.json()) as { error: { code: string; message: string } }
  return [reply.status, error.code, error.message]
}

for (const [path, likely] of [
  ['/v1/projects/', '/v1/projects'],
  ['/v1//projects', '/v1/projects'],
  ['/projects', '/v1/projects'],
  ['/projects/shop/builds/', '/v1/projects/shop/builds'],
  ['/api/v1/runs', '/v1/runs'],
  ['/api/runs', '/v1/runs'],
  ['/docs/', '/docs'],
] as const)
  routes(`names the likely path of ${path}`, async () => {
    assert.equal(await replyTo(path), [404, 'not_found', `No route GET ${path}; did you mean ${likely}?`])
  })

for (const path of [
  '/v1/nothing',
  '/nothing/',
  '/v1/projects/shop/builds/1/2/3',
  '/%2e%2e/',
  '//evil.example/',
])
  routes(`names none for ${path}`, async () => {
    const [status, , message] = await replyTo(path)
    assert.is(status, 404)
    assert.not.match(String(message), 'did you mean')
  })

routes.after(() => server.stop())
routes.run()
