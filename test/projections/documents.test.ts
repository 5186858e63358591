import * as assert from 'uvu/assert'
import type { DomainEvent, EventOf } from '../../src/events/index.ts'
import { builds } from '../../src/projections/builds.ts'
import { contextVariables } from '../../src/projections/contextVariables.ts'
import { domains } from '../../src/projections/customDomains.ts'
import { events } from '../../src/projections/events.ts'
import { files } from '../../src/projections/files.ts'
import { allProjections } from '../../src/projections/index.ts'
import { serviceKeys, sessions } from '../../src/projections/issued.ts'
import { projects } from '../../src/projections/projects.ts'
import { apiKeys, envs, orgs } from '../../src/projections/tenants.ts'
import { uploads } from '../../src/projections/uploads.ts'
import { workers } from '../../src/projections/workers.ts'
import { suite } from '../support/suite.ts'
import { beginsWith, docsAfter } from './recorded.ts'

const at = (n: number): string => `2026-05-01T10:00:00.00${n}Z`
const order = (n: number): string => `${at(n)}/${String(n + 1).padStart(16, '0')}`

const project = suite('the document of a project')
const created: DomainEvent = { type: 'ProjectCreated', project_id: 'p', name: 'shop' }
const projectDoc = {
  project_id: 'p',
  env_id: 'env',
  name: 'shop',
  network: null,
  active: true,
  created_at: at(0),
  updated_at: at(0),
  order: order(0),
}
project('is made', () => assert.equal(docsAfter(projects, [created]), { p: projectDoc }))
project('is renamed, and keeps its place', () =>
  assert.equal(docsAfter(projects, [created, { type: 'ProjectRenamed', project_id: 'p', name: 'store' }]), {
    p: { ...projectDoc, name: 'store', updated_at: at(1) },
  }),
)
project('has the network that was set last', () => {
  const network = ['api.example.com']
  assert.equal(docsAfter(projects, [{ ...created, network }]), { p: { ...projectDoc, network } })
  const changed: DomainEvent = { type: 'ProjectNetworkChanged', project_id: 'p', network }
  assert.equal(docsAfter(projects, [created, changed]), { p: { ...projectDoc, network, updated_at: at(1) } })
})
project('is gone', () =>
  assert.equal(
    docsAfter(projects, [created, { type: 'ProjectDeleted', project_id: 'p', build_ids: [] }]),
    {},
  ),
)
project.run()

const file = suite('the document of a file')
const fileFields = {
  file_id: 'f',
  path: 'a/b',
  key: 'files/env/v1',
  size: 3,
  etag: '"e"',
  content_type: 'text/plain',
  storage_backend: 'disk',
  created_by_run_id: null,
  updated_by_run_id: 'r',
  created_at: at(0),
  updated_at: at(1),
}
const stored: DomainEvent = { type: 'FileStored', ...fileFields }
const former = { key: 'files/env/v1', size: 3 }
file('has the fields of the fact', () =>
  assert.equal(docsAfter(files, [stored]), { f: { ...fileFields, env_id: 'env' } }),
)
file('gets new content', () =>
  assert.equal(docsAfter(files, [stored, { ...stored, key: 'files/env/v2', size: 4, replaced: former }]), {
    f: { ...fileFields, key: 'files/env/v2', size: 4, env_id: 'env' },
  }),
)
file('is gone', () =>
  assert.equal(docsAfter(files, [stored, { type: 'FileDeleted', file_id: 'f', path: 'a/b', former }]), {}),
)
file.run()

const upload = suite('the document of an upload in parts')
const begun: DomainEvent = {
  type: 'UploadBegun',
  upload_id: 'u',
  path: 'a/b',
  content_type: 'text/plain',
  key: 'files/env/u',
  blob_upload_id: 'b',
  part_size: 1,
  parts_expected: 1,
  by_run_id: null,
  expires_at: at(5),
}
upload('exists while it is in progress', () =>
  assert.equal(docsAfter(uploads, [begun]), { u: { upload_id: 'u', env_id: 'env', expires_at: at(5) } }),
)
upload('is gone when it has ended', () => {
  assert.equal(docsAfter(uploads, [begun, { type: 'UploadCompleted', upload_id: 'u' }]), {})
  assert.equal(docsAfter(uploads, [begun, { type: 'UploadAborted', upload_id: 'u', reason: 'expired' }]), {})
})
upload.run()

const build = suite('the document of a build')
const uploaded = (
  build_id: string,
  build_type: 'release' | 'live' = 'release',
): EventOf<'BuildUploaded'> => ({
  type: 'BuildUploaded',
  build_id,
  project_id: 'p',
  hash: 'h',
  size: 9,
  build_type,
  storage_path: `builds/${build_id}.zip`,
  storage_backend: 'disk',
  functions: [{ ns: 'a', var: 'b' }],
})
const deployed = (build_id: string, previous_build_id?: string): DomainEvent => ({
  type: 'BuildDeployed',
  build_id,
  project_id: 'p',
  hash: 'h',
  functions: [{ ns: 'a', var: 'b' }],
  ...(previous_build_id !== undefined && { previous_build_id }),
})
const buildDoc = (build_id: string, n: number) => {
  const { type: _, ...rest } = uploaded(build_id)
  return {
    ...rest,
    env_id: 'env',
    deployed: false,
    active: true,
    created_at: at(n),
    updated_at: at(n),
    order: order(n),
  }
}
build('is made', () => assert.equal(docsAfter(builds, [uploaded('a')]), { 'p/a': buildDoc('a', 0) }))
build('is deployed', () =>
  assert.equal(docsAfter(builds, [uploaded('a'), deployed('a')]), {
    'p/a': { ...buildDoc('a', 0), deployed: true, updated_at: at(1) },
  }),
)
build('is replaced by the next one', () =>
  assert.equal(docsAfter(builds, [uploaded('a'), uploaded('b'), deployed('a'), deployed('b', 'a')]), {
    'p/a': { ...buildDoc('a', 0), updated_at: at(3) },
    'p/b': { ...buildDoc('b', 1), deployed: true, updated_at: at(3) },
  }),
)
build('of another project with the same build_id is another document', () => {
  const elsewhere = { ...uploaded('a'), project_id: 'q' }
  const deployedThere: DomainEvent = { ...elsewhere, type: 'BuildDeployed' }
  const gone: DomainEvent = { type: 'ProjectDeleted', project_id: 'q', build_ids: ['a'] }
  assert.equal(Object.keys(docsAfter(builds, [uploaded('a'), elsewhere])), ['p/a', 'q/a'])
  assert.equal(docsAfter(builds, [uploaded('a'), elsewhere, deployedThere, gone]), {
    'p/a': buildDoc('a', 0),
  })
})
build('is gone with its project', () =>
  assert.equal(
    docsAfter(builds, [
      uploaded('a'),
      uploaded('b'),
      { type: 'ProjectDeleted', project_id: 'p', build_ids: ['a'] },
    ]),
    {
      'p/b': buildDoc('b', 1),
    },
  ),
)
build.run()

const variable = suite('the document of a context variable')
const named = { project_id: 'p', key: 'KEY' }
const variableCreated: DomainEvent = {
  type: 'ContextVariableCreated',
  variable_id: 'v',
  ...named,
  description: 'one',
  sealed: '2.k.x',
}
const variableDoc = {
  ...named,
  description: 'one',
  created_at: at(0),
  updated_at: at(0),
  order: order(0),
}
variable('is made, without the value', () =>
  assert.equal(docsAfter(contextVariables, [variableCreated]), { 'p/KEY': variableDoc }),
)
variable('is updated, and keeps its place', () =>
  assert.equal(
    docsAfter(contextVariables, [
      variableCreated,
      { type: 'ContextVariableUpdated', ...named, description: 'two', sealed: '2.k.y' },
    ]),
    { 'p/KEY': { ...variableDoc, description: 'two', updated_at: at(1) } },
  ),
)
variable('stays unchanged when it is sealed again', () =>
  assert.equal(
    docsAfter(contextVariables, [
      variableCreated,
      { type: 'ContextVariableResealed', ...named, sealed: '2.l.x' },
    ]),
    { 'p/KEY': variableDoc },
  ),
)
variable('is gone, alone or with its project', () => {
  assert.equal(
    docsAfter(contextVariables, [variableCreated, { type: 'ContextVariableDeleted', ...named }]),
    {},
  )
  const other: DomainEvent = { ...variableCreated, project_id: 'q' }
  assert.equal(
    docsAfter(contextVariables, [
      variableCreated,
      other,
      { type: 'ContextClosed', project_id: 'p', keys: ['KEY'] },
    ]),
    { 'q/KEY': { ...variableDoc, project_id: 'q', created_at: at(1), updated_at: at(1), order: order(1) } },
  )
})
variable.run()

const event = suite('the document of an event')
const event_time = '2026-05-01T09:59:00.000Z'
const published: EventOf<'EventPublished'> = {
  type: 'EventPublished',
  event_id: 'e',
  stream_id: 's',
  event_type: 'order:created',
  event_data: { n: 1 },
  source: 'api',
  event_time,
}
const eventDoc = {
  event_id: 'e',
  env_id: 'env',
  stream_id: 's',
  event_type: 'order:created',
  event_time,
  created_at: event_time,
  order: order(0),
}
event('contains the published type and data', () =>
  assert.equal(docsAfter(events, [published]), { e: { ...eventDoc, event_data: { n: 1 } } }),
)
event('may have no data', () => {
  const { event_data: _, ...bare } = published
  assert.equal(docsAfter(events, [bare]), { e: { ...eventDoc, event_data: null } })
})
event('may have its data in the blobs', () => {
  const { event_data: _, ...bare } = published
  const event_data_ref = { key: 'k', size: 70_000, sha256: 'h' }
  assert.equal(docsAfter(events, [{ ...bare, event_data_ref }]), { e: { ...eventDoc, event_data_ref } })
})
event('begins with its fact, whatever was stored before', () => beginsWith(events, published))
event.run()

const tenant = suite('the documents of tenants')
const orgDoc = {
  org_id: 'o',
  slug: 'acme',
  name: 'Acme',
  plan: 'pro',
  team_members: 1,
  created_at: at(0),
  order: order(0),
}
tenant('an organization', () =>
  assert.equal(
    docsAfter(orgs, [{ type: 'OrgCreated', org_id: 'o', slug: 'acme', name: 'Acme', plan: 'pro' }]),
    {
      o: orgDoc,
    },
  ),
)
tenant('an organization that changed', () =>
  assert.equal(
    docsAfter(orgs, [
      { type: 'OrgCreated', org_id: 'o', slug: 'acme', name: 'Acme', plan: 'pro' },
      { type: 'OrgChanged', org_id: 'o', plan: 'scale' },
      { type: 'OrgChanged', org_id: 'o', name: 'New', team_members: 5 },
    ]),
    { o: { ...orgDoc, plan: 'scale', name: 'New', team_members: 5 } },
  ),
)
tenant('an environment', () =>
  assert.equal(docsAfter(envs, [{ type: 'EnvCreated', env_id: 'n', org_id: 'o', name: 'dev' }]), {
    n: { env_id: 'n', org_id: 'o', name: 'dev', active: true, created_at: at(0), order: order(0) },
  }),
)
const keyCreated: DomainEvent = {
  type: 'ApiKeyCreated',
  api_key_id: 'k',
  env_id: 'n',
  name: 'first',
  mac: 'mm',
  permissions: { '*:*': ['*'] },
}
const keyDoc = {
  api_key_id: 'k',
  env_id: 'n',
  name: 'first',
  mac: 'mm',
  permissions: { '*:*': ['*'] },
  enabled: true,
  created_at: at(0),
  updated_at: at(0),
  order: order(0),
}
tenant('an API key, without its secret (I6)', () =>
  assert.equal(docsAfter(apiKeys, [keyCreated]), { k: keyDoc }),
)
tenant('an API key that changed', () =>
  assert.equal(
    docsAfter(apiKeys, [
      keyCreated,
      { type: 'ApiKeyChanged', api_key_id: 'k', enabled: false },
      { type: 'ApiKeyChanged', api_key_id: 'k', name: 'ci', permissions: { 'run:*': ['read'] } },
    ]),
    { k: { ...keyDoc, enabled: false, name: 'ci', permissions: { 'run:*': ['read'] }, updated_at: at(2) } },
  ),
)
tenant('an API key that is gone', () =>
  assert.equal(docsAfter(apiKeys, [keyCreated, { type: 'ApiKeyDeleted', api_key_id: 'k' }]), {}),
)
tenant.run()

const credential = suite('the documents of what an API key issued')
const sessionCreated: DomainEvent = {
  type: 'SessionCreated',
  session_id: 's',
  api_key_id: 'k',
  mac: 'mm',
  permissions: { 'run:*': ['read'] },
  metadata: { user: 7 },
  expires_at: at(9),
}
const sessionDoc = {
  session_id: 's',
  api_key_id: 'k',
  mac: 'mm',
  permissions: { 'run:*': ['read'] },
  metadata: { user: 7 },
  expires_at: at(9),
  env_id: 'env',
  created_at: at(0),
  order: order(0),
}
credential('a session', () => assert.equal(docsAfter(sessions, [sessionCreated]), { s: sessionDoc }))
for (const reason of ['revoked', 'expired'] as const)
  credential(`a session that was ${reason} is gone`, () =>
    assert.equal(
      docsAfter(sessions, [
        sessionCreated,
        { ...sessionCreated, session_id: 't' },
        { type: 'SessionsEnded', api_key_id: 'k', session_ids: ['t', 'u'], reason },
      ]),
      { s: sessionDoc },
    ),
  )
const serviceKeyCreated: DomainEvent = {
  type: 'ServiceKeyCreated',
  service_key_id: 's',
  api_key_id: 'k',
  mac: 'mm',
  name: 'n',
  description: 'd',
  permissions: { 'run:*': ['read'] },
  metadata: 'sealed',
  expires_at: null,
}
const serviceKeyDoc = {
  service_key_id: 's',
  api_key_id: 'k',
  mac: 'mm',
  name: 'n',
  description: 'd',
  permissions: { 'run:*': ['read'] },
  metadata: 'sealed',
  expires_at: null,
  env_id: 'env',
  revoked_at: null,
  last_used_at: null,
  created_at: at(0),
  order: order(0),
}
credential('a service key', () =>
  assert.equal(docsAfter(serviceKeys, [serviceKeyCreated]), { s: serviceKeyDoc }),
)
credential('a service key that was used, and revoked, is still there', () =>
  assert.equal(
    docsAfter(serviceKeys, [
      serviceKeyCreated,
      { type: 'ServiceKeyUsed', service_key_id: 's', api_key_id: 'k', at: at(5) },
      { type: 'ServiceKeysRevoked', service_key_ids: ['s', 'x'], api_key_id: 'k', at: at(6) },
    ]),
    { s: { ...serviceKeyDoc, last_used_at: at(5), revoked_at: at(6) } },
  ),
)
credential.run()

const worker = suite('the document of a worker')
const started: DomainEvent = { type: 'WorkerStarted', worker_id: 'w', node: 'host/1', at: at(0) }
const workerDoc = { worker_id: 'w', node: 'host/1', alive: true, order: order(0) }
worker('is alive', () => assert.equal(docsAfter(workers, [started]), { w: workerDoc }))
worker('is not alive once it stopped or was lost', () => {
  for (const type of ['WorkerStopped', 'WorkerLost'] as const) {
    assert.equal(docsAfter(workers, [started, { type, worker_id: 'w', at: at(1) }]), {
      w: { ...workerDoc, alive: false },
    })
  }
})
worker.run()

const domain = suite('the document of a custom domain')
const registered: DomainEvent = {
  type: 'DomainRegistered',
  domain_id: 'd',
  org_id: 'o',
  domain: 'a.example.com',
  validation_cname_name: '_acme-challenge.a.example.com',
  validation_cname_value: 'd.acme.svc.test',
}
const path: readonly DomainEvent[] = [
  registered,
  { type: 'DomainValidated', domain_id: 'd', routing_domain: 'd.edge.svc.test' },
  { type: 'DomainRouted', domain_id: 'd' },
  { type: 'DomainActivated', domain_id: 'd', domain: 'a.example.com' },
  { type: 'DomainDeleted', domain_id: 'd', domain: 'a.example.com' },
]
for (const [n, status] of (
  ['pending_validation', 'validated', 'provisioning', 'active', 'deleting'] as const
).entries()) {
  domain(`is ${status}, and has its routing domain once it is validated`, () =>
    assert.equal(docsAfter(domains, path.slice(0, n + 1)), {
      d: {
        domain_id: 'd',
        env_id: 'env',
        org_id: 'o',
        domain: 'a.example.com',
        status,
        validation_cname_name: '_acme-challenge.a.example.com',
        validation_cname_value: 'd.acme.svc.test',
        routing_domain: n === 0 ? null : 'd.edge.svc.test',
        created_at: at(0),
        since: at(n),
        order: order(0),
      },
    }),
  )
}
domain('is gone', () =>
  assert.equal(docsAfter(domains, [...path, { type: 'DomainRemoved', domain_id: 'd' }]), {}),
)
domain.run()

const all = suite('every projection')
all('has a name of its own, and an index for each query sorted by a field of its documents', () => {
  assert.is(new Set(allProjections.map(({ name }) => name)).size, allProjections.length)
  for (const { name, indexes, version } of allProjections) {
    assert.ok(version >= 1, name)
    assert.is(new Set(indexes.map(({ equal, sort }) => `${equal.join()} ${sort}`)).size, indexes.length, name)
  }
})
all('begins its documents with facts that were tried', () =>
  assert.equal(allProjections.flatMap(({ begins = [] }) => begins).toSorted(), [
    'EventPublished',
    'RunStarted',
  ]),
)
all.run()
