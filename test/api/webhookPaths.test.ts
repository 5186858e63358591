import * as assert from 'uvu/assert'
import { deploy, upload, type Webhook } from '../support/build.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { callHook } from './hooks.ts'
import { isRefused } from './refusal.ts'

const server = await startServer()
const { api } = server

const hookAt = (name: string, path: string) =>
  `export const ${name} = fn({ webhook: { service: 's', path: '${path}' } }, ({ params, url }) => ({ name: '${name}', params: params ?? null, url }))`
const sourceOf = (paths: Readonly<Record<string, string>>) =>
  [`import { fn } from 'svc'`, ...Object.entries(paths).map(([name, path]) => hookAt(name, path))].join('\n')

await deploy(api, 'paths', {
  'h.js': sourceOf({
    order: '/orders/:id',
    item: '/orders/:id/items/:item',
    fresh: '/orders/new',
    root: '/',
  }),
})
const { data } = await api.page<Webhook>('/projects/paths/webhooks')

/** The URL of a function with its parameters replaced. */
const urlOf = (name: string, params: Readonly<Record<string, string>> = {}): string =>
  (data.find((webhook) => webhook.var === name)?.url ?? '').replaceAll(/:([a-z]+)(?=\/)/g, (text, param) =>
    Object.hasOwn(params, param) ? (params[param] ?? '') : text,
  )
const called = async (url: string) => (await callHook(url)).json

const paths = suite('a webhook path with parameters')

paths('gives their values to the function, decoded', async () => {
  assert.equal(await called(urlOf('order', { id: '7' })), {
    name: 'order',
    params: { id: '7' },
    url: '/webhook/s/orders/7',
  })
  assert.equal(await called(urlOf('item', { id: 'a%20b', item: '%C3%BC' })), {
    name: 'item',
    params: { id: 'a b', item: 'ü' },
    url: '/webhook/s/orders/a%20b/items/%C3%BC',
  })
  assert.equal(await called(urlOf('fresh')), { name: 'fresh', params: null, url: '/webhook/s/orders/new' })
})

paths('belongs to the endpoint whose token the URL has', async () => {
  assert.equal(await called(urlOf('order', { id: 'new' })), {
    name: 'order',
    params: { id: 'new' },
    url: '/webhook/s/orders/new',
  })
  assert.is((await callHook(urlOf('order', { id: '7' }).replace(/.$/, '~'))).status, 404)
  const token = urlOf('item').split('/').at(-1) ?? ''
  assert.is((await callHook(urlOf('order', { id: '7' }).replace(/[^/]+$/, token))).status, 404)
})

paths('does not match an empty segment, an encoded slash or another number of segments', async () => {
  for (const id of ['', 'a%2Fb', 'a/b']) assert.is((await callHook(urlOf('order', { id }))).status, 404, id)
})

paths('is unique without the names of its parameters', async () => {
  const twice = sourceOf({ a: '/x/:id', b: '/x/:other' })
  await api.post('/projects', { name: 'twice' })
  isRefused(
    await upload(api, 'twice', { 'h.js': twice }),
    'h/b: Expected a unique webhook, got POST s/x/:other, which h/a has too',
  )
})

paths('has no wildcards', async () =>
  isRefused(
    await upload(api, 'twice', { 'h.js': sourceOf({ a: '/files/*' }) }),
    'h.js: a: Expected webhook.path to have no wildcards',
  ),
)

paths.after(() => server.stop())
paths.run()
