import Type from 'typebox'
import * as assert from 'uvu/assert'
import { closed } from '../../src/api/http/closed.ts'
import { patternRules } from '../../src/api/http/patternRules.ts'
import { checkBody } from '../../src/api/http/validate.ts'
import { allRoutes } from '../../src/api/routes/index.ts'
import type { Route } from '../../src/api/route.ts'
import { readConfig } from '../../src/process/config.ts'
import { openStore } from '../../src/process/engines.ts'
import { openSecrets } from '../../src/process/secretsFile.ts'
import { formOf } from '../support/build.ts'
import { openApi } from '../support/http.ts'
import { installation } from '../support/installation.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { zipBuild } from '../support/zipBuild.ts'
import { isRefused, refusal } from './refusal.ts'

const server = await startServer()
const { api } = server
const config = readConfig(installation(server.dataDir))
const operator = openApi(server.url, openSecrets(config).operatorToken)
await api.post('/projects', { name: 'own' })

/** Sends a body to a route, whose path parameters are all `own`. */
const send = ({ method, path, operator: isOperators }: Route, body: unknown) =>
  (isOperators ? operator : api).send(method, server.url + path.replace(/:\w+/g, 'own'), { body })

/** The patterns of the fields of a schema. Names of any form have none. */
const patternsIn = (schema: unknown, field = ''): [field: string, pattern: string][] =>
  typeof schema !== 'object' || schema === null
    ? []
    : Object.entries(schema).flatMap(([key, value]) =>
        key === 'pattern' && typeof value === 'string'
          ? [[field, value]]
          : key === 'documented' || key === 'patternProperties'
            ? []
            : patternsIn(value, key),
      )

const refusedRequests = new Set<string>()

const body = suite('a body with a field that the route does not have')

// The route of MCP replies with an error of JSON-RPC: test/api/mcp/protocol.test.ts.
for (const route of allRoutes.filter((one) => one.body && !one.parseBody)) {
  body(`is refused by ${route.operationId}, which names the field and those it has`, async () => {
    const { example } = route
    if (typeof example !== 'object' || example === null) throw new Error('Expected an example')
    const [known = ''] = Object.keys(example)
    const refused = await send(route, { ...example, [`${known}x`]: 1 })
    isRefused(refused, new RegExp(`^${known}x: unknown field; expected (.+, )?${known}\\b`))
    refusedRequests.add(refused.headers.get('x-request-id') ?? '')
  })
}

for (const route of allRoutes.filter(({ method, body: schema, form, rawBody }) =>
  method === 'GET' ? false : !schema && !form && rawBody === undefined,
))
  body(`is refused by ${route.operationId}, which takes no body`, async () => {
    const refused = await send(route, { force: true })
    isRefused(refused, /^force: unknown field; expected no fields$/)
    refusedRequests.add(refused.headers.get('x-request-id') ?? '')
  })

body('is refused by a route that takes no body, also if it is no object', async () => {
  isRefused(await api.send('DELETE', '/sessions', { body: ['id'] }), /^body: must be object, got \["id"\]$/)
  isRefused(await api.send('DELETE', '/sessions', { body: '{"id":' }), /^body: expected JSON: /)
  assert.is((await api.send('DELETE', '/sessions', { body: {} })).status, 200)
  assert.is((await api.send('DELETE', '/sessions')).status, 200)
})

const words = suite('a text of the wrong form')

words('is refused with the rule in words', async () => {
  isRefused(
    await api.send('POST', '/projects', { body: { name: 'a b' } }),
    /^name: expected 1 to 63 letters, digits, "\.", "_" and "-", beginning with a letter or digit, got "a b"$/,
  )
  isRefused(
    await api.send('POST', '/projects/own/context', { body: { key: 'a b', value: 'v' } }),
    /^key: expected 1 to 128 letters, digits, "_", "\." and "-", beginning with a letter or "_"$/,
  )
  isRefused(
    await operator.send('POST', `${server.url}/operator/secrets/rotate-master`, {
      body: { master_key: 'x' },
    }),
    /: expected 32 bytes in base64: 44 characters$/,
  )
})

words('names the item of a list that may be null', async () => {
  const changed = (network: unknown) => api.send('PATCH', '/projects/own', { body: { network } })
  isRefused(await changed(['a.example', 7]), /^network\.1: must be string, got 7$/)
  isRefused(await changed('a.example'), /^network: expected array or null, got "a.example"$/)
})

for (const { operationId, body: schema, query } of allRoutes)
  for (const [field, pattern] of patternsIn({ body: schema, query }))
    words(`has a rule in words for ${field} of ${operationId}`, () => {
      assert.ok(patternRules.has(pattern), pattern)
    })

body('is refused as a form too', async () => {
  const form = formOf(await zipBuild({ 'a.js': 'export const a = 1' }), { lives: 'true' })
  const refused = await api.send('POST', '/projects/own/builds', { body: form })
  isRefused(refused, 'lives: unknown field; expected file, hash, build_id, live')
  refusedRequests.add(refused.headers.get('x-request-id') ?? '')
})

body('is refused as a form with another file', async () => {
  const form = formOf(await zipBuild({ 'a.js': 'export const a = 1' }))
  form.set('zip', form.get('file') ?? '')
  form.delete('file')
  isRefused(await api.send('POST', '/projects/own/builds', { body: form }), 'zip: unknown field')
})

const CUT_FORM = '--B\r\nContent-Disposition: form-data; name="hash"\r\n\r\nab'

body('is refused as a form in words, and not in those of its parser', async () => {
  const form = formOf(await zipBuild({ 'a.js': 'export const a = 1' }))
  form.set('hash', form.get('file') ?? '')
  isRefused(
    await api.send('POST', '/projects/own/builds', { body: form }),
    'file: expected no other file in the form; a part of another field has no filename',
  )
  const cut = (type: string) =>
    api.send('POST', '/projects/own/builds', { body: CUT_FORM, headers: { 'content-type': type } })
  isRefused(
    await cut('multipart/form-data; boundary=B'),
    'body: expected a whole form, which ends with the boundary of its Content-Type',
  )
  isRefused(await cut('multipart/form-data'), 'Content-Type: expected multipart/form-data with a boundary')
})

body('is refused for the unknown field, also if a required one is missing', async () => {
  isRefused(await api.send('POST', '/projects', { body: { nam: 'a' } }), 'nam: unknown field; expected name')
})

body('is refused for names that every object has, and for any number of names', async () => {
  const named = (name: string) => `{"name":"a","${name}":{}}`
  for (const name of ['__proto__', 'constructor', 'toString', 'a/b~c'])
    isRefused(await api.send('POST', '/projects', { body: named(name) }), `${name}: unknown field`)
  const many = Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`f${n}`, n]))
  isRefused(await api.send('POST', '/projects', { body: { name: 'a', ...many } }), 'f0: unknown field')
})

body('is refused with a message that cuts a long name', async () => {
  const { message } = refusal(await api.send('POST', '/projects', { body: { ['x'.repeat(5000)]: 1 } }))
  assert.match(message, /^x{60}…: unknown field; expected name, network$/)
})

body('is refused without any of the fields that a change has', async () => {
  const changed = (path: string) => operator.send('PATCH', `${server.url}/operator/${path}`, { body: {} })
  isRefused(await changed('orgs/own'), /^body: expected at least one of plan, name, team_members, got {}$/)
  isRefused(
    await changed('api-keys/own'),
    /^body: expected at least one of enabled, name, permissions, expires_in, got {}$/,
  )
})

body('is refused in a nested object, which is named', () => {
  const Address = Type.Optional(Type.Object({ city: Type.String() }))
  const check = checkBody(closed(Type.Object({ name: Type.String(), address: Address })))
  assert.throws(
    () => check({ name: 'a', address: { city: 'b', zip: 1 } }),
    /^address\.zip: unknown field; expected city$/,
  )
  assert.equal(check({ name: 'a' }), { name: 'a' })
})

body('is not refused for a field of free JSON or of a permission map', async () => {
  const event = { event_type: 'a', event_data: { any: { thing: 1 } } }
  assert.is((await api.send('POST', '/events', { body: event })).status, 201)
  const session = { permissions: { 'run:*': ['read'] }, metadata: { any: { thing: 1 } } }
  assert.is((await api.send('POST', '/sessions', { body: session })).status, 201)
})

body('appended nothing', async () => {
  await server.stop()
  const store = await openStore(config)
  const head = await store.head()
  const end = new AbortController()
  const caused: string[] = []
  for await (const { events, cursor } of store.subscribe({ signal: end.signal })) {
    for (const { event, metadata } of events)
      if (refusedRequests.has(metadata.correlation_id)) caused.push(event.type)
    if (cursor >= head) break
  }
  end.abort()
  await store.close()
  assert.ok(refusedRequests.size > 10)
  assert.equal(caused, [])
})

const spellings = suite('a publish body with both spellings of a field')
const other = await startServer()
spellings.after(() => other.stop())

spellings('is accepted if they are equal', async () => {
  const event = { event_type: 'a', type: 'a', event_data: { n: [1] }, data: { n: [1] } }
  assert.is((await other.api.send('POST', '/events', { body: event })).status, 201)
})

spellings('is refused if they differ', async () => {
  for (const path of ['/events', '/streams/subscribe-with-event']) {
    const sent = (event: object) => other.api.send('POST', path, { body: event })
    isRefused(
      await sent({ event_type: 'a', type: 'b', event_data: null }),
      'type: expected the same value as event_type',
    )
    isRefused(
      await sent({ event_type: 'a', event_data: null, data: 1 }),
      'data: expected the same value as event_data',
    )
  }
  assert.is((await other.api.page('/events')).data.length, 1)
})

words.run()
body.run()
spellings.run()
