import { Validator } from '@seriousme/openapi-schema-validator'
import * as assert from 'uvu/assert'
import { toOpenApi, type OpenApiDocument } from '../../src/api/openapi/document.ts'
import { allRoutes } from '../../src/api/routes/index.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { resolved } from './liveReply.ts'

type Operation = Record<string, unknown> & {
  operationId: string
  responses: Record<string, unknown>
  parameters?: { name: string; in: string; description?: string }[]
}

const documentation = toOpenApi(allRoutes, { version: '0' })
const operations = Object.entries(documentation.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method, operation: operation as Operation })),
)

const document = suite('the OpenAPI document')

document('is valid OpenAPI 3.1', async () => {
  const validator = new Validator()
  const { valid, errors } = await validator.validate(JSON.parse(JSON.stringify(documentation)))
  assert.ok(valid, JSON.stringify(errors))
  assert.is(validator.version, '3.1')
})

document('has every route, and nothing else', () => {
  const routes = allRoutes.map(({ method, path }) => `${method} ${path.replace(/[:*](\w+)/g, '{$1}')}`)
  const documented = operations.map(({ method, path }) => `${method.toUpperCase()} ${path}`)
  assert.equal(documented.sort(), [...new Set(routes)].sort())
})

document('names every operation differently', () => {
  const ids = operations.map(({ operation }) => operation.operationId)
  assert.equal(
    ids.filter((id, index) => ids.indexOf(id) !== index || !/^[a-z][A-Za-z]+$/.test(id)),
    [],
  )
})

document('names members and parameters in snake_case, except headers', () => {
  const names: string[] = []
  const collect = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    const { properties, parameters } = value as { properties?: unknown; parameters?: unknown }
    if (typeof properties === 'object') names.push(...Object.keys(properties ?? {}))
    if (Array.isArray(parameters))
      for (const each of parameters as { name?: string; in: string }[])
        if (each.name !== undefined && each.in !== 'header') names.push(each.name)
    for (const part of Object.values(value)) collect(part)
  }
  collect(documentation)
  assert.ok(names.includes('run_id'))
  assert.equal(
    names.filter((name) => !/^[a-z][a-z0-9_]*$/.test(name)),
    [],
  )
})

document('has no dangling reference', () => {
  assert.not.throws(() => resolved(documentation, documentation))
})

document(
  'has no choice with a member that matches any value, because its type in a client is unknown',
  () => {
    const choices: object[] = []
    const collect = (value: unknown): void => {
      if (typeof value !== 'object' || value === null) return
      const { anyOf, oneOf } = value as { anyOf?: object[]; oneOf?: object[] }
      choices.push(...(anyOf ?? []), ...(oneOf ?? []))
      for (const part of Object.values(value)) collect(part)
    }
    collect(documentation)
    assert.ok(choices.length > 0)
    assert.equal(
      choices.filter((choice) => Object.keys(choice).length === 0),
      [],
    )
  },
)

document('allows no unknown field in any object of a request body', () => {
  const objects: Record<string, unknown>[] = []
  const collect = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    if ('properties' in value) objects.push({ ...value })
    for (const part of Object.values(value)) collect(part)
  }
  for (const { operation } of operations) {
    const { content = {} } = (resolved(documentation, operation['requestBody']) ?? {}) as { content?: object }
    for (const { schema } of Object.values(content) as { schema?: unknown }[]) collect(schema)
  }
  assert.ok(objects.length > 10)
  for (const object of objects) assert.is(object['additionalProperties'], false, JSON.stringify(object))
})

document('describes the parameters of every path', () => {
  for (const { path, operation } of operations) {
    const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
    const inPath = (operation.parameters ?? []).filter((parameter) => parameter.in === 'path')
    assert.equal(
      inPath.map(({ name }) => name),
      named,
    )
    for (const { name, description } of inPath) assert.ok(description, `${path}: describe ${name}`)
  }
})

document('describes the permission of each endpoint, and its refusal', () => {
  for (const { path, method, operation } of operations) {
    const isMcp = path === '/mcp' // its tools have permissions of their own
    const isSignIn = path.startsWith('/v1/sign-in') // for any credential, or for one in the body
    const isOpen = !path.startsWith('/v1/') && !isMcp
    if (isSignIn) continue
    assert.is(Array.isArray(operation['security']), isOpen, `${method} ${path}`)
    if (isOpen) continue
    if (!isMcp) assert.match(String(operation['description']), /Permission: `\w+` on `\w+:\*`/)
    for (const status of ['401', '403', '503'])
      assert.ok(operation.responses[status], `${method} ${path}: ${status}`)
  }
})

document('declares for every body that it can arrive too late', () => {
  const reading = operations.filter(
    ({ path, operation }) => operation['requestBody'] ?? path.startsWith('/webhook'),
  )
  assert.ok(reading.length > 30)
  for (const { path, method, operation } of reading)
    assert.ok(operation.responses['408'], `${method} ${path}`)
})

document('declares that a webhook refuses credentials', () => {
  for (const { path, method, operation } of operations.filter(({ path }) => path.startsWith('/webhook'))) {
    const { description } = resolved(documentation, operation.responses['403']) as { description: string }
    assert.match(description, '`forbidden`', `${method} ${path}`)
  }
})

const UNCHANGED = ['200', '304']
const IN_PARTS = ['200', '206', '304']
const OF_DOWNLOADS = ['If-None-Match', 'Range', 'If-Range', 'If-Match', 'If-Unmodified-Since']
for (const [operationId, statuses, headers] of [
  ['downloadFile', IN_PARTS, OF_DOWNLOADS],
  ['downloadFileAt', IN_PARTS, OF_DOWNLOADS],
  ['getOpenApiDocument', UNCHANGED, ['If-None-Match']],
  ['getDocsPage', UNCHANGED, ['If-None-Match']],
  ['getDocsAsset', UNCHANGED, ['If-None-Match']],
  ['getGuide', UNCHANGED, ['If-None-Match']],
  ['getLlmsText', UNCHANGED, ['If-None-Match']],
  ['getPackage', UNCHANGED, ['If-None-Match']],
  ['getDashboard', UNCHANGED, ['If-None-Match']],
  ['getDashboardAsset', UNCHANGED, ['If-None-Match']],
] as const)
  document(`declares the conditions of ${operationId}`, () => {
    const { operation } = operations.find((one) => one.operation.operationId === operationId) ?? {}
    const { responses = {}, parameters = [] } = operation ?? {}
    assert.equal(
      Object.keys(responses).filter((status) => status < '400'),
      statuses,
    )
    assert.not('content' in (responses['304'] as object))
    assert.equal(
      parameters.filter((parameter) => parameter.in === 'header').map(({ name }) => name),
      headers,
    )
  })

document('lists the events of every stream', () => {
  for (const { path, operation } of operations.filter(({ path }) => /subscribe/.test(path))) {
    const { content } = operation.responses['200'] as {
      content: Record<string, { schema: { oneOf: unknown[] } }>
    }
    assert.ok((content['text/event-stream']?.schema.oneOf.length ?? 0) > 5, path)
  }
})

document.run()

const served = suite<{ server: TestServer }>('GET /openapi.json')

served.before(async (context) => {
  context.server = await startServer()
})
served.after(({ server }) => server.stop())

served('is the document of the routes, with the version that runs', async ({ server }) => {
  const { status, headers, json } = await server.api.send('GET', `${server.url}/openapi.json`)
  assert.is(status, 200)
  assert.match(headers.get('content-type') ?? '', /^application\/json/)
  const { info, paths } = json as OpenApiDocument
  assert.is(info['version'], 'test')
  assert.equal(paths, JSON.parse(JSON.stringify(documentation.paths)))
})

served('is not sent to a client that has the current version', async ({ server }) => {
  const url = `${server.url}/openapi.json`
  const etag = (await server.api.send('GET', url)).headers.get('etag') ?? ''
  const again = await server.api.send('GET', url, {
    headers: { 'If-None-Match': etag, 'Cache-Control': 'max-age=0' }, // else fetch forbids a 304
  })
  assert.is(again.status, 304)
  assert.is(again.text, '')
})

served.run()
