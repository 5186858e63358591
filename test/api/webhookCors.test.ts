import * as assert from 'uvu/assert'
import { deploy, type Webhook } from '../support/build.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'

const PAGE = 'https://shop.example'
const OTHER = 'https://evil.test'

const server = await startServer({ env: { SVC_CORS_ORIGINS: OTHER } }) // the setting is not for webhooks
const { api } = server
await deploy(api, 'shop', {
  'h.js': `import { fn } from 'svc'
    const at = (path, cors, more) => ({ webhook: { service: 's', path, cors, ...more } })
    export const some = fn(at('/some', ['${PAGE}', 'http://localhost:*']), ({ headers }) => headers['x-own'] ?? null)
    export const all = fn(at('/all', '*'), () => { throw new Error('secret') })
    export const shown = fn(at('/shown', ['${PAGE}'], { method: 'GET' }), () => 1)
    export const none = fn(at('/none'), () => 1)
    export const own = fn(at('/own', ['${PAGE}']), () => new Response('', { headers: {
      'access-control-allow-origin': '*', 'access-control-expose-headers': 'X-A', 'x-a': '1' } }))
    export const cached = fn(at('/cached', ['${PAGE}']), () => new Response('', { headers: { vary: 'Accept, X-A' } }))
    export const user = fn(at('/users/:id', ['${PAGE}'], { method: 'PUT', auth: 'required' }), ({ params }) => params.id)`,
})
const hooks = await api.get<Webhook[]>('/projects/shop/webhooks')
const urlOf = (path: string): string => hooks.find((hook) => hook.path === path)?.url ?? ''

const send = async (method: string, path: string, headers: Record<string, string>) => {
  const reply = await fetch(urlOf(path), { method, headers })
  const access = [...reply.headers].filter(([name]) => name.startsWith('access-control-'))
  return { status: reply.status, vary: reply.headers.get('vary'), access: Object.fromEntries(access) }
}

const preflight = (path: string, Origin: string, method = 'POST') =>
  send('OPTIONS', path, {
    Origin,
    'Access-Control-Request-Method': method,
    'Access-Control-Request-Headers': 'content-type,x-own',
  })

const cors = suite('a webhook in a browser (CORS)')

for (const [path, origin, method] of [
  ['/some', PAGE, 'POST'],
  ['/some', 'http://localhost:5173', 'POST'],
  ['/all', OTHER, 'POST'],
  ['/users/:id', PAGE, 'PUT'],
  ['/shown', PAGE, 'GET'],
  ['/shown', PAGE, 'HEAD'],
] as const)
  cors(`answers a preflight of ${origin} for ${method} of ${path}`, async () => {
    assert.equal(await preflight(path, origin, method), {
      status: 204,
      vary: 'Origin',
      access: {
        'access-control-allow-origin': origin,
        'access-control-allow-methods': method,
        'access-control-allow-headers': 'content-type,x-own',
        'access-control-max-age': '7200',
        'access-control-expose-headers': 'X-Request-Id, Retry-After, Idempotency-Replayed, Removed-Headers',
      },
    })
  })

cors('permits nothing to a page of another origin', async () => {
  for (const path of ['/some', '/none', '/own']) {
    const { status, access } = await preflight(path, OTHER)
    assert.equal([status, access], [204, {}], path)
  }
  const { vary, access } = await send('POST', '/some', { Origin: OTHER })
  assert.equal([vary, access], ['Origin', {}])
})

cors('keeps Vary beside that of the function, or a cache would send the reply to other pages', async () => {
  const { vary, access } = await send('POST', '/cached', { Origin: PAGE })
  assert.equal([vary, access['access-control-allow-origin']], ['Origin, Accept, X-A', PAGE])
})

cors('answers no preflight for another method, another token or an unknown path', async () => {
  assert.is((await preflight('/some', PAGE, 'GET')).status, 404)
  const wrong = await fetch(`${urlOf('/some')}x`, {
    method: 'OPTIONS',
    headers: { Origin: PAGE, 'Access-Control-Request-Method': 'POST' },
  })
  assert.equal([wrong.status, wrong.headers.get('access-control-allow-origin')], [404, null])
})

cors('lets the page read the reply, also that of a failure or a refusal', async () => {
  for (const [path, method, status] of [
    ['/some', 'POST', 200],
    ['/all', 'POST', 500],
    ['/users/:id', 'PUT', 401],
  ] as const) {
    const reply = await send(method, path, { Origin: PAGE })
    assert.equal([reply.status, reply.access['access-control-allow-origin']], [status, PAGE], path)
  }
})

cors('prefers the headers of the function', async () => {
  const { access } = await send('POST', '/own', { Origin: PAGE })
  assert.equal(access, { 'access-control-allow-origin': '*', 'access-control-expose-headers': 'X-A' })
})

cors('names all methods that webhooks may have to a client that asks for them', async () => {
  const { status, headers } = await fetch(urlOf('/some'), { method: 'OPTIONS' })
  assert.equal([status, headers.get('allow')], [204, 'GET, POST, PUT, PATCH, DELETE, HEAD'])
})

cors('lists its origins', () => {
  assert.equal(Object.fromEntries(hooks.map(({ path, cors: origins }) => [path, origins])), {
    '/some': [PAGE, 'http://localhost:*'],
    '/all': ['*'],
    '/none': undefined,
    '/own': [PAGE],
    '/cached': [PAGE],
    '/users/:id': [PAGE],
    '/shown': [PAGE],
  })
})

cors.after(() => server.stop())
cors.run()
