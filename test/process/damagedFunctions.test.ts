import { globSync, readFileSync, truncateSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { readConfig } from '../../src/process/config.ts'
import { openSecrets } from '../../src/process/secretsFile.ts'
import { deploy, handled, publish, type Run, runsOf, type Webhook } from '../support/build.ts'
import { openApi } from '../support/http.ts'
import { installation } from '../support/installation.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

/** A list of these functions is longer than 64 KiB, so it is in a blob. */
const MANY = `import { fn } from 'svc'
export const paid = fn({ onEvent: 'paid' }, () => 'many')
export const hook = fn({ webhook: { service: 'many', path: '/hook' } }, () => 1)
${Array.from({ length: 1500 }, (_, n) => `export const f${String(n).padStart(50, '0')} = () => 1`).join('\n')}`

const FEW = `import { fn } from 'svc'
export const paid = fn({ onEvent: 'paid' }, () => 'few')
export const hook = fn({ webhook: { service: 'few', path: '/hook' } }, () => 1)`

/** The file with the long list of functions. */
const listIn = (dataDir: string): string => {
  const found = globSync(join(dataDir, '**/*.json')).filter((file) =>
    readFileSync(file, 'latin1').startsWith('[{"ns"'),
  )
  assert.is(found.length, 1, found.join(' '))
  return String(found[0])
}

const flip = (file: string): void => {
  const bytes = readFileSync(file)
  const at = bytes.indexOf('"paid"') + 1 // still JSON: the handler would wait for another event
  bytes[at] = (bytes[at] ?? 0) ^ 1
  writeFileSync(file, bytes)
}

const operatorOf = ({ dataDir, url }: TestServer) =>
  openApi(url, openSecrets(readConfig(installation(dataDir))).operatorToken)

interface Abandoned {
  readonly event_id: string
  readonly error: { readonly code: string; readonly message: string }
  readonly projects?: readonly string[]
}

const damaged = suite('a damaged list of functions', { timeoutMs: 90_000 })
for (const [name, damage] of [
  ['has a flipped bit', flip],
  ['was truncated', (file: string) => truncateSync(file, 1000)],
  ['is missing', (file: string) => rmSync(file)],
] as const)
  damaged(`that ${name} stops nothing but its project, and loses no event`, async () => {
    const first = await startServer()
    const { dataDir } = first
    const { project_id, build_id } = await deploy(first.api, 'many', { 'main.js': MANY })
    await deploy(first.api, 'few', { 'main.js': FEW })
    const urlOf = async (project: string): Promise<string> => {
      const { data } = await first.api.page<Webhook>(`/projects/${project}/webhooks`)
      return new URL(data[0]?.url ?? '').pathname
    }
    const [few, many] = [await urlOf('few'), await urlOf('many')]
    await first.stop()
    const file = listIn(dataDir)
    const healthy = readFileSync(file)
    damage(file)

    const server = await startServer({ dataDir })
    const { api } = server
    const ready = await fetch(`${server.url}/readyz`)
    assert.is(ready.status, 200)
    await until(async () => {
      const { damaged_builds: found } = (await (await fetch(`${server.url}/readyz`)).json()) as {
        damaged_builds?: { project_id: string; build_id: string }[]
      }
      return found?.[0]?.project_id === project_id && found[0].build_id === build_id
    })
    await until(() => server.output.some((line) => line.includes('The functions of a build cannot be read')))

    const listed = await api.send('GET', '/projects/many/functions')
    assert.is(listed.status, 503)
    assert.match(listed.text, build_id)
    for (const list of ['event-handlers', 'schedules', 'webhooks'])
      assert.is((await api.send('GET', `/projects/many/${list}`)).status, 503, list)
    const called = await api.send('POST', '/functions/many/main%2Fpaid', { body: {} })
    assert.is(called.status, 503, called.text)
    assert.is((await fetch(`${server.url}${many}`, { method: 'POST' })).status, 503)
    assert.is((await fetch(`${server.url}${few}`, { method: 'POST' })).status, 200)
    assert.is((await api.page('/projects/few/functions')).pagination.total, 2)

    const { event_id } = await publish(api, 'paid')
    const [run] = await handled(api, event_id)
    assert.is(run?.result, 'few')
    const operator = operatorOf(server)
    const abandoned = await until(async () => {
      const { json } = await operator.send('GET', `${server.url}/operator/abandoned-events`)
      return (json as { data: Abandoned[] }).data.find((event) => event.event_id === event_id)
    })
    assert.equal(abandoned.projects, [project_id])

    writeFileSync(file, healthy)
    await until(async () => (await api.send('GET', '/projects/many/functions')).status === 200)
    assert.is((await fetch(`${server.url}${many}`, { method: 'POST' })).status, 200)
    const replayed = await operator.send('POST', `${server.url}/operator/events/${event_id}/replay`)
    assert.is(replayed.status, 201)
    const again = (replayed.json as { data: { event_id: string } }).data.event_id
    const results = (await handled(api, again)).map(({ result }: Run) => result)
    assert.equal(results, ['many'], 'the handler that the event has started does not start again')
    assert.is((await runsOf(api, event_id)).length, 1)
    const both = await handled(api, (await publish(api, 'paid')).event_id, 2)
    assert.equal(both.map(({ result }) => result).sort(), ['few', 'many'])
    await server.stop()
  })

damaged('is replaced by the next deployment of its project', async () => {
  const first = await startServer()
  const { dataDir } = first
  await deploy(first.api, 'many', { 'main.js': MANY })
  await first.stop()
  truncateSync(listIn(dataDir), 1000)
  const server = await startServer({ dataDir })
  const { changes } = await deploy(server.api, 'many', { 'main.js': FEW })
  assert.is(changes.removed.length, 0)
  assert.is((await server.api.page('/projects/many/functions')).pagination.total, 2)
  const { damaged_builds: left } = (await (await fetch(`${server.url}/readyz`)).json()) as object & {
    damaged_builds?: unknown
  }
  assert.is(left, undefined)
  await server.stop()
})

damaged.run()
