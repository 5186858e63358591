import * as assert from 'uvu/assert'
import type { Static } from 'typebox'
import type { AuditedFact, ReplayedFact } from '../../src/api/schemas.ts'
import { openSecrets } from '../../src/process/secretsFile.ts'
import { readConfig } from '../../src/process/config.ts'
import { newId } from '../../src/ids.ts'
import { deploy, publish, runsOf, type Project } from '../support/build.ts'
import { openApi } from '../support/http.ts'
import { installation } from '../support/installation.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { isRefused, refusal } from './refusal.ts'

type Replayed = Static<typeof ReplayedFact> & { readonly changes: Readonly<Record<string, unknown>> }

const server = await startServer()
const { api } = server
const { operatorToken } = openSecrets(readConfig(installation(server.dataDir)))
const operator = openApi(server.url, operatorToken)

const name = `replayed-${newId()}`
const build = await deploy(api, name, {
  'f.js': `import { fn } from 'svc'\nexport const on = fn({ 'on-event': '${name}' }, async () => 'done')`,
})
await api.patch(`/projects/${name}`, { name: `${name}-2` })
const { project_id } = await api.get<Project>(`/projects/${name}-2`)

const at = (query: Record<string, string>): string =>
  `${server.url}/operator/audit/replay?${new URLSearchParams({ limit: '100', ...query }).toString()}`
const replay = async (query: Record<string, string>): Promise<Replayed[]> =>
  (await operator.page<Replayed>(at(query))).data
const typesOf = (facts: readonly Replayed[]): string[] => facts.map(({ type }) => type)

const replaying = suite('a replay')

replaying('shows each fact of a resource, what it changed and the state after it', async () => {
  const facts = await replay({ resource: project_id })
  assert.equal(typesOf(facts), ['ProjectCreated', 'BuildUploaded', 'BuildDeployed', 'ProjectRenamed'])
  const [created, uploaded, deployed, renamed] = facts
  assert.equal(created?.changes['name'], { after: name })
  assert.ok(`builds.${build.build_id}` in (uploaded?.changes ?? {}))
  assert.ok(JSON.stringify(deployed?.state).includes(`"deployed":{"build_id":"${build.build_id}"`))
  assert.equal(renamed?.changes['name'], { before: name, after: `${name}-2` })
  assert.ok(JSON.stringify(renamed?.state).includes(`"name":"${name}-2"`))
  assert.equal(await replay({ stream: `project-${project_id}` }), facts)
})

replaying('has the positions of the audit, and stops at a position or a time', async () => {
  const facts = await replay({ resource: project_id })
  const { data } = await api.page<Static<typeof AuditedFact>>(
    `/audit?resource=${project_id}&after=start&limit=100`,
  )
  assert.equal(
    facts.map(({ position, time, type }) => ({ position, time, type })),
    data.map(({ position, time, type }) => ({ position, time, type })),
  )
  const [, second, third] = facts
  assert.ok(second && third)
  assert.equal(await replay({ resource: project_id, until: second.position }), facts.slice(0, 2))
  const by = facts.filter(({ time }) => time <= third.time)
  assert.equal(await replay({ resource: project_id, until: third.time }), by)
})

replaying('has pages, each with the same states', async () => {
  const facts = await replay({ resource: project_id })
  const pages = [0, 1, 2, 3].map((offset) =>
    replay({ resource: project_id, limit: '1', offset: String(offset) }),
  )
  assert.equal((await Promise.all(pages)).flat(), facts)
  const { pagination } = await operator.page(at({ resource: project_id, limit: '2', offset: '1' }))
  assert.equal(pagination, { total: 4, limit: 2, offset: 1, has_more: true })
})

replaying('of a build, a run or an event shows the facts about it', async () => {
  assert.equal(typesOf(await replay({ resource: build.build_id })), ['BuildUploaded', 'BuildDeployed'])
  const { event_id, stream_id } = await publish(api, name, { secret: 'of the payload' })
  const [run] = await until(async () => {
    const runs = await runsOf(api, event_id)
    return runs[0]?.status === 'succeeded' ? runs : null
  })
  assert.ok(run)
  const ofRun = await replay({ resource: run.run_id })
  assert.equal(typesOf(ofRun).slice(-2), ['RunStarted', 'RunSucceeded'])
  assert.ok(typesOf(await replay({ resource: event_id })).includes('EventPublished'))
  const ofStream = await replay({ resource: stream_id })
  assert.is(ofStream[0]?.type, 'StreamCreated')
  assert.not.match(JSON.stringify(ofStream), 'of the payload')
})

replaying('shows no secret', async () => {
  await api.post(`/projects/${name}-2/context`, { key: 'KEY', value: 'a hidden value' })
  const { session_id } = await api.post<{ session_id: string }>('/sessions', {
    permissions: { 'run:*': ['read'] },
    metadata: 'a hidden value',
  })
  const all = [await replay({ stream: `context-${project_id}` }), await replay({ resource: session_id })]
  for (const facts of all) {
    assert.ok(facts.length > 0)
    assert.not.match(JSON.stringify(facts), 'a hidden value')
  }
  assert.ok('variables.KEY' in (all[0]?.[0]?.changes ?? {}))
})

const wrong: [what: string, query: Record<string, string>, message: RegExp][] = [
  ['neither a stream nor a resource', {}, /stream: expected a stream or a resource, got neither/],
  [
    'both',
    { stream: `project-${project_id}`, resource: project_id },
    /resource: expected either .*, got both/,
  ],
  [
    'a kind of stream that does not exist',
    { stream: 'nothing-1' },
    /stream: no stream has such a name, got "nothing-1"/,
  ],
  [
    'a time in the future',
    { resource: project_id, until: '2999-01-01' },
    /until: expected a time in the past, got 2999/,
  ],
  [
    'a text that is no time',
    { resource: project_id, until: 'now' },
    /until: expected a position of this log, such as [0-9a-f]{16,}, or an ISO 8601 time .*, got "now"/,
  ],
  [
    'a short position',
    { resource: project_id, until: '12' },
    /until: expected a position of this log, such as [0-9a-f]{16,}, or an ISO 8601 time .*, got "12"/,
  ],
]
for (const [what, query, message] of wrong)
  replaying(`refuses ${what}`, async () => isRefused(await operator.send('GET', at(query)), message))

replaying('refuses a position beyond the end of the log', async () => {
  const [fact] = await replay({ resource: project_id })
  const beyond = (fact?.position ?? '').replaceAll(/./g, fact?.position.length === 16 ? '9' : 'f')
  isRefused(
    await operator.send('GET', at({ resource: project_id, until: beyond })),
    /beyond the end of the log/,
  )
})

replaying('does not find what the log does not contain', async () => {
  for (const query of [{ resource: newId() }, { stream: `project-${newId()}` }]) {
    const { status, code } = refusal(await operator.send('GET', at(query)))
    assert.equal([status, code], [404, 'not_found'])
  }
})

replaying('names what a resource may be, because the name of a project is none', async () => {
  const { message } = refusal(await operator.send('GET', at({ resource: 'shop' })))
  assert.match(message, /nothing in the log has the id, path, key or domain "shop"; .* with their ids/)
})

replaying('needs the operator token', async () => {
  assert.is((await api.send('GET', at({ resource: project_id }))).status, 401)
})

replaying.after(() => server.stop())
replaying.run()
