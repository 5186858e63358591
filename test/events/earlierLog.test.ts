import { createHash } from 'node:crypto'
import { cpSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import * as assert from 'uvu/assert'
import type { NewEvent } from '../../src/events/event.ts'
import { schemaOf } from '../../src/events/index.ts'
import { openSecrets } from '../../src/process/secretsFile.ts'
import { readConfig } from '../../src/process/config.ts'
import { type Event, handle, type Run, type Webhook } from '../support/build.ts'
import { startDns } from '../support/dnsServer.ts'
import { problemOf } from '../support/factCheck.ts'
import { type Api, openApi } from '../support/http.ts'
import { installation } from '../support/installation.ts'
import { plantStored, type StoredFact } from '../support/plantStored.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

/** See its README.md for what was done to make it. */
const fixture = fileURLToPath(new URL('../fixtures/log-0.1.0', import.meta.url))
/** As svc 0.1.0 returned it. */
const WEBHOOK_PATH = '/webhook/local/dev/bank/paid/1zhovN2GwSeOG3v0D6iSH2dkFcq21ta9D'
const SERVICE_KEY = '01a20181-756c-7128-8ff5-95063c766327_8oqtMzYxuYejanEP1zRhurcXOmsZUGYjNq7Rbex9zmy42CtX4'
const THEIR_KEY = 'svc_01a20181-75bb-713d-86e2-ac909957051a_enZBAesS7y4XtC8PBGNTUxHRdC5IpbT002iM9kBL5bK1YiY7u'

const facts = readFileSync(`${fixture}/log.jsonl`, 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => JSON.parse(line) as StoredFact)

const catalogue = suite('the catalogue, for a log of 0.1.0')

catalogue('accepts every fact', () => {
  assert.is(facts.length > 200, true)
  for (const [stream, revision, id, , event, metadata] of facts)
    assert.is(problemOf({ id, event, metadata } as NewEvent), undefined, `${stream} ${revision}`)
})

catalogue('is exercised: the log has nearly every type of 0.1.0', () => {
  const recorded = new Set(facts.map(([, , , , event]) => (event as { type: string }).type))
  const absent = Object.keys(schemaOf).filter((type) => !recorded.has(type))
  assert.ok(absent.includes('RequestReleased'))
  assert.is(recorded.size, 53)
})

const recordedRuns = new Set(facts.flatMap(([, , , , event]) => ('run_id' in event ? [event.run_id] : [])))

/** Only the runs of the recorded log: the schedule of the log adds a run at every minute that begins during the test. */
const runsOf = async (api: Api, query: string): Promise<Run[]> =>
  (await api.page<Run>(`/runs?limit=100&${query}`)).data.filter(({ run_id }) => recordedRuns.has(run_id))

/** The rules for a service that opens these facts. */
const opening = (what: string, stored: readonly StoredFact[]) => {
  const earlier = suite<{ server: TestServer; api: Api; operator: Api; stop: () => Promise<void> }>(
    `${what}, opened by this version`,
  )

  earlier.before(async (context) => {
    const dns = await startDns()
    const dataDir = tempDir()
    cpSync(fixture, dataDir, { recursive: true })
    plantStored(dataDir, stored)
    const env = {
      SVC_DNS_SERVERS: dns.address,
      SVC_DOMAINS_ZONE: 'svc.test',
      SVC_DOMAIN_CHECK_MS: '3600000',
      SVC_EVENT_STORE: 'embedded:',
      SVC_BLOBS: 'embedded:',
    }
    const server = await startServer({ dataDir, env })
    const { operatorToken } = openSecrets(readConfig(installation(dataDir, env)))
    Object.assign(context, {
      server,
      api: server.api,
      operator: openApi(server.url, operatorToken),
      stop: async () => {
        await server.stop()
        await dns.stop()
      },
    })
  })
  earlier.after(({ stop }) => stop())

  earlier('is folded by every read model', async ({ server, api }) => {
    const { status, text } = await api.send('GET', `${server.url}/readyz`)
    assert.is(status, 200, text)
    assert.equal(
      server.output.filter((line) => /cannot be processed|was stopped|failed/.test(line)),
      [],
    )
  })

  earlier('has its projects, builds and variables', async ({ api }) => {
    const names = (await api.page<{ name: string }>('/projects')).data.map(({ name }) => name)
    assert.equal(names, ['empty', 'shop'])
    const builds = await api.page<{ build_type: string; deployed: boolean }>('/projects/shop/builds')
    assert.equal(
      builds.data.map(({ build_type, deployed }) => [build_type, deployed]),
      [
        ['live', false],
        ['release', true],
        ['release', false],
      ],
    )
    const variables = await api.page<{ key: string; description: string }>('/projects/shop/context')
    assert.equal(variables.data.map(({ key }) => key).sort(), ['API_KEY', 'REGION'])
  })

  earlier('has its events, with payloads from the blobs', async ({ api }) => {
    const totals: Record<string, number> = {}
    for (const type of ['order:created', 'order:noted', 'order:flaky', 'nobody:listens', 'once'])
      totals[type] = (await api.page(`/events?event_type=${type}`)).pagination.total
    assert.equal(totals, {
      'order:created': 3,
      'order:noted': 2,
      'order:flaky': 1,
      'nobody:listens': 1,
      once: 1,
    })
    const noted = (await api.page<Event>('/events?event_type=order:noted')).data
    const [fromChain, large] = await Promise.all(
      noted.map(({ event_id }) => api.get<Event>(`/events/${event_id}`)),
    )
    assert.equal(fromChain?.event_data, { from: 'chain' })
    assert.equal(large?.event_data, { text: 'a'.repeat(66_000) })
  })

  earlier('has its runs and how they ended', async ({ api }) => {
    const ofEvents = await runsOf(api, 'type=event')
    const doubled = ofEvents.map(({ result }) => (result as { doubled?: number } | null)?.doubled)
    assert.equal(
      doubled.filter((n) => n !== undefined),
      [6, 4, 2],
    )
    assert.is(ofEvents.filter(({ status }) => status === 'failed').length, 2)
    assert.equal(
      (await runsOf(api, 'type=eval')).map(({ result }) => result),
      [42],
    )
    assert.is((await runsOf(api, 'type=repl'))[0]?.result, 42)
    assert.is((await runsOf(api, 'status=cancelled')).length, 2)
    const failed = (await runsOf(api, 'status=failed')).map(
      ({ error }) => (error as { message: string; code: string }).code,
    )
    assert.equal(failed.sort(), ['function_failed', 'function_failed', 'worker_lost'])
    const ticks = await runsOf(api, 'type=schedule')
    assert.equal(ticks.map(({ status }) => status).sort(), ['cancelled', 'succeeded'])
    assert.equal(await runsOf(api, 'status=running'), [])
  })

  earlier('has its files and their contents', async ({ server, api }) => {
    const { data } = await api.page<{ file_id: string; path: string; size: number }>('/files')
    assert.equal(
      data.map(({ path, size }) => [path, size]),
      [
        ['docs/one.txt', 10],
        ['docs/parts.bin', 100],
        ['reports/by-run.txt', 16],
      ],
    )
    const contents = []
    for (const { file_id } of data)
      contents.push((await api.send('GET', `${server.url}/v1/files/${file_id}/download`)).text)
    assert.equal(contents, ['one, again', '\x07'.repeat(100), 'written by a run'])
  })

  earlier('has its domains', async ({ api }) => {
    const { data } = await api.page<{ domain: string; status: string }>('/domains')
    assert.equal(
      data.map(({ domain, status }) => [domain, status]),
      [
        ['pending.example.com', 'pending_validation'],
        ['hooks.example.com', 'active'],
      ],
    )
  })

  earlier('has its service keys, and they are valid', async ({ server, api }) => {
    type Key = { name: string; metadata: unknown; revoked_at: string | null; last_used_at: string | null }
    const { data } = await api.page<Key>('/service-keys')
    assert.equal(
      data.map(({ name, revoked_at, last_used_at }) => [name, revoked_at !== null, last_used_at !== null]),
      [
        ['old', true, false],
        ['partner', false, true],
      ],
    )
    assert.equal(data[1]?.metadata, { partner: 'ü' }, 'the metadata is unsealed')
    const partner = openApi(server.url, SERVICE_KEY)
    assert.ok((await partner.page('/runs')).pagination.total > 0)
  })

  earlier('has its organizations and keys', async ({ server, operator }) => {
    const at = (path: string) => `${server.url}/operator${path}`
    type Org = { slug: string; name: string; plan: string; team_members: number }
    const orgs = (await operator.page<Org>(at('/orgs'))).data
    const acme = orgs.find(({ slug }) => slug === 'acme')
    assert.equal([acme?.name, acme?.plan, acme?.team_members], ['Acme Inc', 'pro', 4])
    const [env] = (await operator.page<{ env_id: string; name: string }>(at('/orgs/acme/envs'))).data
    assert.is(env?.name, 'prod')
    const keys = (await operator.page<{ name: string }>(at(`/envs/${env?.env_id}/api-keys`))).data
    assert.equal(
      keys.map(({ name }) => name),
      ['ci 2'],
    )
    const theirs = await openApi(server.url, THEIR_KEY).page<{ name: string }>('/projects')
    assert.equal(
      theirs.data.map(({ name }) => name),
      ['theirs'],
    )
  })

  earlier('unseals its secrets for functions', async ({ api }) => {
    // Values of variables are masked in results, so the code returns their hash.
    const hash = (text: string) => createHash('sha256').update(text).digest('hex')
    const code = `const { createHash } = await import('node:crypto')
      const hash = (text) => createHash('sha256').update(text).digest('hex')
      ;[hash(await ns.orders.secretOf('API_KEY')), hash(await ns.orders.secretOf('REGION'))]`
    const { result } = await api.post<{ result: unknown }>('/projects/shop/eval', { code })
    assert.equal(result, ['second secret', 'eu-west'].map(hash))
  })

  earlier('has the same webhook token, and the webhook is served', async ({ server, api }) => {
    const [webhook] = (await api.page<Webhook>('/projects/shop/webhooks')).data
    assert.is(new URL(webhook?.url ?? '').pathname, WEBHOOK_PATH)
    const reply = await fetch(`${server.url}${WEBHOOK_PATH}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ amount: 9 }),
    })
    assert.equal([reply.status, await reply.json()], [200, { got: { amount: 9 } }])
  })

  earlier('still works: an event starts its handler, and a replay repeats a run', async ({ api }) => {
    assert.equal((await handle(api, 'order:created', { n: 21 })).result, { doubled: 42 })
    const calls = await runsOf(api, 'type=call')
    const added = calls.find(({ result }) => result === 3)
    const [replayed] = [await handle(api, 'svc:replay', { run_id: added?.run_id })]
    assert.is(replayed.result, 3)
  })

  return earlier
}

/**
 * The same facts as a later minor version may write them: with more fields. Those of a request are kept in the claim of
 * its run, which the check of all appended facts would refuse.
 */
const withAdditions = facts.map((fact): StoredFact => {
  const [stream, revision, id, at, event, metadata] = fact
  if ('type' in event && event.type === 'RunRequested') return fact
  const added = { added_later: { to: ['every', 'fact'] } }
  return [stream, revision, id, at, { ...event, ...added }, { ...metadata, ...added }]
})

const earlier = opening('a log of 0.1.0', facts)
const later = opening('a log with fields of a later minor version', withAdditions)

later('shows no unknown field to clients', async ({ server, api }) => {
  const paths = ['/projects', '/projects/shop/builds', '/projects/shop/context', '/projects/shop/webhooks']
  const lists = ['/events', '/runs', '/files', '/domains', '/sessions', '/service-keys', '/keys/usage']
  const texts = []
  for (const path of [...paths, ...lists]) {
    const { text } = await api.send('GET', `${server.url}/v1${path}`)
    texts.push(text)
  }
  assert.equal(
    texts.filter((text) => text.includes('added_later')),
    [],
  )
})

catalogue.run()
earlier.run()
later.run()
