import * as assert from 'uvu/assert'
import { openEventStore } from '../../src/adapters/embedded/eventStore/index.ts'
import type { NewEvent, Recorded } from '../../src/events/event.ts'
import type { DomainEvent } from '../../src/events/index.ts'
import type { FunctionSpec } from '../../src/events/project.ts'
import { newId } from '../../src/ids.ts'
import { builds } from '../../src/projections/builds.ts'
import { Directory } from '../../src/projections/directory.ts'
import { domains } from '../../src/projections/customDomains.ts'
import { ProjectDirectory } from '../../src/projections/projectDirectory.ts'
import { projects } from '../../src/projections/projects.ts'
import { envs, orgs } from '../../src/projections/tenants.ts'
import type { Doc } from '../../src/ports/readModels.ts'
import type { Projection } from '../../src/projections/projection.ts'
import type { EventStore } from '../../src/ports/eventStore.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

const handler = (name: string): FunctionSpec => ({ ns: 'orders', var: name, on_event: 'order:created' })
const hook: FunctionSpec = {
  ns: 'hooks',
  var: 'paid',
  webhook: { service: 'stripe', path: '/paid', method: 'POST', name: 'n', description: '', auth: 'none' },
}
const uploaded = (
  project_id: string,
  build_id: string,
  functions: FunctionSpec[],
  build_type: 'release' | 'live' = 'release',
): DomainEvent => ({
  type: 'BuildUploaded',
  build_id,
  project_id,
  hash: `hash-${build_id}`,
  size: 1,
  build_type,
  storage_path: 'x',
  storage_backend: 'disk',
  functions,
})
const deployed = (
  project_id: string,
  build_id: string,
  functions: FunctionSpec[],
  previous_build_id?: string,
): DomainEvent => ({
  type: 'BuildDeployed',
  build_id,
  project_id,
  hash: `hash-${build_id}`,
  functions,
  ...(previous_build_id !== undefined && { previous_build_id }),
})

const registered = (domain_id: string, domain: string): DomainEvent => ({
  type: 'DomainRegistered',
  domain_id,
  org_id: 'o',
  domain,
  validation_cname_name: 'n',
  validation_cname_value: 'v',
})

const certificate = (domain_id: string, certificate_id: string): DomainEvent => ({
  type: 'CertificateIssued',
  domain_id,
  certificate_id,
  chain: 'PEM',
  sealed: 's',
  not_before: '2026-05-01T10:00:00.000Z',
  not_after: '2026-08-01T10:00:00.000Z',
})

const facts: readonly DomainEvent[] = [
  { type: 'OrgCreated', org_id: 'o', slug: 'local', name: 'Local', plan: 'self_host' },
  { type: 'EnvCreated', env_id: 'env', org_id: 'o', name: 'dev' },
  { type: 'ImportBegun', env_id: 'env', empty: true },
  { type: 'OrgChanged', org_id: 'o', plan: 'pro' },
  { type: 'ProjectCreated', project_id: 'p2', name: 'shop' },
  { type: 'ProjectCreated', project_id: 'p1', name: 'store' },
  uploaded('p2', 'b1', [handler('a'), hook]),
  deployed('p2', 'b1', [handler('a'), hook]),
  uploaded('p1', 'b2', [handler('a')]),
  deployed('p1', 'b2', [handler('a')]),
  uploaded('p2', 'live1', [handler('live')], 'live'),
  { type: 'ProjectRenamed', project_id: 'p2', name: 'boutique' },
  uploaded('p2', 'b3', [handler('a'), handler('b')]),
  deployed('p2', 'b3', [handler('a'), handler('b')], 'b1'),
  { type: 'ProjectCreated', project_id: 'p3', name: 'shop' },
  uploaded('p2', 'live2', [handler('live')], 'live'),
  { type: 'ProjectRenamed', project_id: 'p2', name: 'market' },
  { type: 'ProjectDeleted', project_id: 'p1', build_ids: ['b2'] },
  { type: 'ProjectCreated', project_id: 'p4', name: 'store', network: ['a.example'] },
  { type: 'ProjectNetworkChanged', project_id: 'p2', network: ['b.example'] },
  { type: 'SchedulePaused', project_id: 'p2', ns: 'jobs', var: 'nightly' },
  { type: 'SchedulePaused', project_id: 'p2', ns: 'jobs', var: 'hourly' },
  deployed('p2', 'b1', [handler('a'), hook], 'b3'),
  { type: 'ScheduleResumed', project_id: 'p2', ns: 'jobs', var: 'nightly' },
  uploaded('p2', 'live3', [handler('live')], 'live'),
  { type: 'BuildDeleted', build_id: 'live1', project_id: 'p2', size: 1, reason: 'superseded' },
  { type: 'BuildDeleted', build_id: 'live3', project_id: 'p2', size: 1, reason: 'asked' },
  uploaded('p4', 'b4', [handler('a')]),
  { type: 'EnvImported', env_id: 'env', keys: 0, blobs: 0, facts: 4 },
  registered('d1', 'a.example.com'),
  { type: 'DomainValidated', domain_id: 'd1', routing_domain: 'r' },
  { type: 'DomainRouted', domain_id: 'd1' },
  { type: 'DomainActivated', domain_id: 'd1', domain: 'a.example.com' },
  registered('d2', 'b.example.com'),
  { type: 'DomainActivated', domain_id: 'd2', domain: 'b.example.com' },
  { type: 'DomainDeleted', domain_id: 'd1', domain: 'a.example.com' },
  registered('d3', 'c.example.com'),
  { type: 'ChallengePublished', domain_id: 'd3', values: ['v1'] },
  { type: 'CertificateFailed', domain_id: 'd3', message: 'no', retry_at: '2026-05-01T10:00:00.000Z' },
  { type: 'ChallengePublished', domain_id: 'd3', values: ['v2'] },
  registered('d4', 'd.example.com'),
  certificate('d4', 'c1'),
  { type: 'DomainValidated', domain_id: 'd4', routing_domain: 'r' },
  { type: 'DomainRouted', domain_id: 'd4' },
  { type: 'DomainActivated', domain_id: 'd4', domain: 'd.example.com' },
  certificate('d4', 'c2'),
  { type: 'DomainSuspended', domain_id: 'd4', domain: 'd.example.com', status: 'provisioning' },
  registered('d5', 'e.example.com'),
  { type: 'DomainActivated', domain_id: 'd5', domain: 'e.example.com' },
  { type: 'DomainSuspended', domain_id: 'd5', domain: 'e.example.com', status: 'pending_validation' },
]

const NAMES = ['a', 'b', 'c', 'd', 'e'] as const

/** Everything that a directory can return about these facts. */
const shown = (directory: Directory) => ({
  certificates: [...directory.domains.all()],
  env: directory.env('env'),
  isImporting: directory.isImporting('env'),
  usedSince: directory.usedSince('env'),
  at: directory.envAt('local', 'dev')?.env_id,
  projects: [...directory.projects()],
  named: ['shop', 'store', 'boutique', 'market', 'p1', 'p2', 'p3', 'p4'].map(
    (name) => directory.project('env', name)?.project_id,
  ),
  networks: ['p2', 'p3', 'p4'].map((id) => directory.project('env', id)?.network),
  elsewhere: directory.project('other', 'p2'),
  handlers: directory
    .handlersOf('env', 'order:created')
    .map(({ project, build, fn }) => [project.name, build.build_id, fn.var]),
  webhook: directory.webhookAt('env', 'POST', 'stripe', '/paid')?.build.build_id,
  noWebhook: directory.webhookAt('env', 'GET', 'stripe', '/paid'),
  domains: NAMES.map((name) => directory.envOfDomain(`${name}.example.com`)?.env_id),
  proved: NAMES.map((name) => directory.domains.proved(`${name}.example.com`)),
  challenges: ['d1', 'd2', 'd3', 'd4'].map((id) => directory.domains.byId(id)?.challenge),
  first: directory.functionAt('env', 'orders/a')?.project.project_id,
  inOne: directory.functionAt('env', 'orders/b', 'p2')?.build.build_id,
})

interface Context {
  store: EventStore
  cursors: string[]
}
const directory = suite<Context>('the directory')
directory.before(async (context) => {
  const store = openEventStore({ dir: tempDir() })
  const cursors: string[] = []
  for (const [i, event] of facts.entries()) {
    const stored: NewEvent = { id: newId(), event, metadata: { env_id: 'env', correlation_id: 'c' } }
    cursors.push((await store.append(`d-${i}`, [stored], 'none')).cursor)
  }
  Object.assign(context, { store, cursors })
})
directory.after(({ store }) => store.close())

const nothingInBlobs = () => Promise.reject(new Error('the blobs are empty'))
const fromLog = async ({ store }: Context, directory = new Directory(nothingInBlobs)) => {
  const stopping = new AbortController()
  const running = directory.run(store, stopping.signal)
  await directory.reach(await store.head())
  stopping.abort()
  await running
  return directory
}

/** The documents of the first `count` events, in the order of the log. */
const docsAt = async <D extends Doc>(
  { store }: Context,
  projection: Projection<D>,
  count: number,
): Promise<D[]> => {
  const docs = new Map<string, D>()
  for (let i = 0; i < count; i++) {
    for await (const recorded of store.read(`d-${i}`)) {
      if (!projection.handles.includes(recorded.event.type)) continue
      for (const id of projection.idsOf(recorded)) {
        const doc = projection.evolve(docs.get(id) ?? null, recorded, id)
        if (doc) docs.set(id, doc)
        else docs.delete(id)
      }
    }
  }
  return [...docs.values()].sort((a, b) => (String(a['order']) < String(b['order']) ? -1 : 1))
}

directory('folded from the log alone contains everything that exists', async (context) => {
  const known = shown(await fromLog(context))
  assert.equal(known.env, { env_id: 'env', name: 'dev', org_id: 'o', org_slug: 'local', plan: 'pro' })
  assert.is(known.at, 'env')
  assert.equal(known.named, ['p3', 'p4', undefined, 'p2', undefined, 'p2', 'p3', 'p4'])
  assert.is(known.elsewhere, undefined)
  assert.equal(known.handlers, [['market', 'b1', 'a']])
  assert.is(known.webhook, 'b1')
  assert.is(known.noWebhook, undefined)
  assert.equal(known.domains, [undefined, 'env', undefined, undefined, undefined])
  assert.equal(
    known.proved.map((domain) => domain && [domain.domain_id, domain.status, domain.certificate_id]),
    [undefined, ['d2', 'active', null], undefined, ['d4', 'provisioning', 'c2'], undefined],
  )
  assert.equal(
    known.certificates.map(({ domain_id, certificate_expires_at, order_failed }) => [
      domain_id,
      certificate_expires_at,
      order_failed,
    ]),
    [
      ['d2', null, false],
      ['d3', null, true],
      ['d4', '2026-08-01T10:00:00.000Z', false],
      ['d5', null, false],
    ],
  )
  assert.equal(known.challenges, [undefined, [], ['v2'], []])
  assert.is(known.first, 'p2')
  assert.is(known.inOne, undefined)
  const [market, , store] = known.projects
  assert.equal([store?.name, store?.deployed, store?.live], ['store', null, null])
  assert.equal(
    market?.pauses.map(({ var: name, resumed_at }) => [name, resumed_at === null]),
    [
      ['nightly', false],
      ['hourly', true],
    ],
  )
  assert.equal([market?.deployed?.build_id, market?.live?.build_id], ['b1', 'live2'])
})

directory(
  'seeded from the read models and then kept by the log knows the same, wherever it was seeded',
  async (context) => {
    const known = shown(await fromLog(context))
    for (let cut = 0; cut <= facts.length; cut++) {
      // The read models may be ahead of the cursor that they were read for.
      for (const ahead of [cut, Math.min(cut + 3, facts.length), facts.length]) {
        const seeded = new Directory(nothingInBlobs)
        await seeded.seed({
          orgs: await docsAt(context, orgs, ahead),
          envs: await docsAt(context, envs, ahead),
          projects: await docsAt(context, projects, ahead),
          builds: await docsAt(context, builds, ahead),
          domains: await docsAt(context, domains, ahead),
          cursor: context.cursors[cut - 1] ?? '',
        })
        const found = shown(await fromLog(context, seeded))
        assert.equal(found, known, `seeded at ${ahead}, kept from ${cut}`)
      }
    }
  },
)

directory('forgets a deleted environment with its projects, wherever it was seeded', async () => {
  const store = openEventStore({ dir: tempDir() })
  const cursors: string[] = []
  const deletion: readonly DomainEvent[] = [
    ...facts,
    { type: 'EnvDeleted', env_id: 'env' },
    { type: 'ProjectCreated', project_id: 'late', name: 'late' },
    { type: 'EnvPurged', env_id: 'env', final: true },
    { type: 'EnvCreated', env_id: 'env2', org_id: 'o', name: 'dev' },
    { type: 'OrgDeleted', org_id: 'o', env_ids: ['env', 'env2'] },
  ]
  for (const [i, event] of deletion.entries()) {
    const stored: NewEvent = { id: newId(), event, metadata: { env_id: 'env', correlation_id: 'c' } }
    cursors.push((await store.append(`d-${i}`, [stored], 'none')).cursor)
  }
  const log = { store, cursors }
  const withOrg = deletion.length - 1
  const seededAt = async (count: number, known: number) => {
    const seeded = new Directory(nothingInBlobs)
    await seeded.seed({
      orgs: await docsAt(log, orgs, known),
      envs: await docsAt(log, envs, known),
      projects: await docsAt(log, projects, known),
      builds: [],
      domains: [],
      cursor: cursors[count - 1] ?? '',
    })
    return seeded
  }
  const before = await seededAt(withOrg, withOrg)
  assert.is(before.env('env'), undefined)
  assert.equal(before.handlersOf('env', 'order:created'), [])
  assert.equal([...before.envsOf('o')], ['env2'])
  assert.equal([...before.deletedEnvsOf('o')], ['env'])
  assert.is(before.envAt('local', 'dev')?.env_id, 'env2')
  for (let count = 0; count <= deletion.length; count++) {
    for (const known of [count, deletion.length]) {
      const found = await fromLog(log, await seededAt(count, known))
      assert.equal(
        [found.env('env'), found.env('env2')],
        [undefined, undefined],
        `seeded at ${known} of ${count}`,
      )
      assert.equal([...found.deletedEnvsOf('o')], [])
      assert.equal(found.handlersOf('env', 'order:created'), [])
    }
  }
  await store.close()
})

const UNWIRED: readonly DomainEvent[] = [
  { type: 'SchedulePaused', project_id: 'p2', ns: 'jobs', var: 'nightly' },
  { type: 'ScheduleResumed', project_id: 'p2', ns: 'jobs', var: 'nightly' },
  { type: 'ProjectNetworkChanged', project_id: 'p2', network: ['b.example'] },
  uploaded('p2', 'live4', [handler('live')], 'live'),
  { type: 'BuildDeleted', build_id: 'live4', project_id: 'p2', size: 1, reason: 'asked' },
  uploaded('p2', 'b9', [handler('new')]),
  { type: 'ProjectCreated', project_id: 'p9', name: 'empty' },
  { type: 'ProjectDeleted', project_id: 'p9', build_ids: [] },
]
const REWIRED: readonly DomainEvent[] = [
  deployed('p2', 'b9', [handler('new')], 'b1'),
  { type: 'ProjectRenamed', project_id: 'p2', name: 'bazaar' },
  { type: 'ProjectDeleted', project_id: 'p2', build_ids: ['b9'] },
]

directory('finds handlers, webhooks and tools anew only after a change that concerns them', async () => {
  const projectsOf = new ProjectDirectory({ loadFunctions: nothingInBlobs, isDeleted: () => false })
  const apply = (event: DomainEvent) =>
    projectsOf.apply({
      event,
      at: '2026-05-01T10:00:00.000Z',
      metadata: { env_id: 'env' },
    } as unknown as Recorded)
  await apply({ type: 'ProjectCreated', project_id: 'p2', name: 'shop' })
  await apply(deployed('p2', 'b1', [handler('a'), hook]))
  const wiring = projectsOf.wiringOf('env')
  for (const event of UNWIRED) {
    await apply(event)
    assert.is(projectsOf.wiringOf('env'), wiring, event.type)
  }
  for (const event of REWIRED) {
    const before = projectsOf.wiringOf('env')
    await apply(event)
    assert.is.not(projectsOf.wiringOf('env'), before, event.type)
  }
  assert.equal([...projectsOf.wiringOf('env').handlers], [])
})

directory('reports the project whose functions changed', async (context) => {
  const changed: string[] = []
  const listening = new Directory(nothingInBlobs)
  const stop = listening.onChange((project_id) => void changed.push(project_id))
  await fromLog(context, listening)
  assert.equal(new Set(changed), new Set(['p1', 'p2', 'p3', 'p4']))
  stop()
  const before = changed.length
  await listening.seed({
    orgs: [],
    envs: [],
    projects: [{ project_id: 'p5', env_id: 'env', name: 'x', network: null }],
    builds: [],
    domains: [],
    cursor: '',
  })
  assert.is(changed.length, before)
})

directory('loads long lists of functions from the blobs', async (context) => {
  const { store } = context
  const ref = { key: 'payloads/x', size: 70_000, sha256: 'x' }
  const at = newId()
  const events: DomainEvent[] = [
    { type: 'ProjectCreated', project_id: at, name: at },
    { type: 'BuildDeployed', build_id: 'big', project_id: at, hash: 'h', functions_ref: ref },
  ]
  const asNew = events.map((event) => ({ id: newId(), event, metadata: { env_id: at, correlation_id: 'c' } }))
  await store.append(`d-${at}`, asNew, 'none')
  const loading = new Directory((asked) => Promise.resolve(asked.key === ref.key ? [handler('far')] : []))
  assert.equal(loading.handlersOf(at, 'order:created'), [])
  await fromLog(context, loading)
  assert.is(loading.handlersOf(at, 'order:created')[0]?.fn.var, 'far')
})

directory('finds a function in the same time, however many there are', async () => {
  const of = new Directory(nothingInBlobs)
  const alike = (n: number): FunctionSpec => ({
    ns: 'n'.repeat(200),
    var: 'v'.repeat(100) + String(n).padStart(5, '0'),
  })
  const functions = Array.from({ length: 10_000 }, (_, n) => alike(n))
  const build = {
    build_id: 'b',
    project_id: 'many',
    hash: 'h',
    deployed: true,
    build_type: 'release',
  } as const
  await of.seed({
    orgs: [],
    envs: [],
    projects: [{ project_id: 'many', env_id: 'env', name: 'many', network: null }],
    builds: [{ ...build, functions, updated_at: '' }],
    domains: [],
    cursor: '',
  })
  const last = alike(9999)
  assert.is(of.functionAt('env', `${last.ns}/${last.var}`)?.fn.var, last.var)
  assert.is(of.functionAt('env', `${last.ns}/${last.var}`, 'many')?.fn.var, last.var)
  assert.is(of.functionAt('other', `${last.ns}/${last.var}`, 'many'), undefined)
  const before = process.cpuUsage()
  for (let n = 0; n < 5000; n++)
    assert.is(of.functionAt('env', `${last.ns}/${'v'.repeat(100)}x${n}`), undefined)
  const { user } = process.cpuUsage(before)
  assert.ok(user < 0.3e6, `5000 look-ups took ${user} µs of the processor`)
})

directory.run()
