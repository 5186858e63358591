import * as assert from 'uvu/assert'
import { newId } from '../../src/ids.ts'
import { cli, cliJson } from '../support/cli.ts'
import { openApi } from '../support/http.ts'
import { EMBEDDED } from '../support/installation.ts'
import { spawnServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

interface Org {
  readonly org_id: string
  readonly slug: string
  readonly plan: string
  readonly envs: readonly Env[]
}
interface Env {
  readonly env_id: string
  readonly org: string
  readonly name: string
  readonly api_keys: readonly Key[]
}
interface Key {
  readonly api_key_id: string
  readonly name: string
  readonly token: string
  readonly enabled: boolean
  readonly access: string
  readonly expires_at: string | null
  readonly former: Key
}

const server = await spawnServer({ env: { ...EMBEDDED, SVC_MASTER_KEY: '' } })
const given = { env: { SVC_URL: server.url, SVC_DATA_DIR: server.dataDir } }
const svc = (...args: readonly string[]) => cli(args, given)
const json = <T>(...args: readonly string[]) => cliJson<T>(args, given)
/** The status of a request with the token. */
const statusOf = async (token: string): Promise<number> => {
  const api = openApi(server.url, token)
  return (await api.send('GET', `${server.url}/v1/env`)).status
}

const orgs = suite('svc orgs', { timeoutMs: 60_000 })

orgs('creates, shows, changes and deletes an organization', async () => {
  const created = await json<Org>('orgs', 'create', 'acme', '--plan', 'pro', '--name', 'Acme Inc.')
  assert.equal([created.slug, created.plan], ['acme', 'pro'])
  assert.is((await json<Org>('orgs', 'set-plan', 'acme', 'scale')).plan, 'scale')
  const shown = await json<Org>('orgs', 'show', created.org_id)
  assert.equal([shown.slug, shown.plan, shown.envs], ['acme', 'scale', []])
  const listed = await svc('orgs', 'list')
  assert.match(listed.out, /^SLUG +NAME +PLAN +CREATED +ID\nacme +Acme Inc\. +scale /)
  assert.is((await svc('orgs', 'delete', 'acme', '--yes')).out, 'Deleted organization acme\n')
  assert.equal(
    (await json<Org[]>('orgs', 'list')).map(({ slug }) => slug),
    ['local'],
  )
})

orgs('keeps an organization with environments, and names them', async () => {
  const { code, err } = await svc('orgs', 'delete', 'local', '--yes')
  assert.is(code, 1)
  assert.match(err, /^svc: org: "local" has environments \(1\): "dev"/)
})

orgs('lists more organizations than one page of the API', async () => {
  const operator = openApi(server.url, (await svc('secrets', 'operator-token')).out.trim())
  for (let n = 0; n < 105; n++)
    await operator.send('POST', `${server.url}/operator/orgs`, { body: { slug: `many-${n}`, plan: 'free' } })
  const slugs = (await json<Org[]>('orgs', 'list')).map(({ slug }) => slug)
  assert.equal(
    slugs.filter((slug) => slug.startsWith('many-')),
    Array.from({ length: 105 }, (_, n) => `many-${104 - n}`),
  )
})

for (const [args, code, expected] of [
  [['orgs', 'show', 'nope'], 1, 'svc: No organization "nope"\n'],
  [['orgs', 'show', '../envs'], 1, 'svc: No organization "../envs"\n'],
  [['orgs', 'show', '..'], 2, 'svc: expected a name or an id, got ".."\n'],
  [
    ['orgs', 'create', 'x'],
    2,
    "svc: required option '--plan <PLAN>' not specified; run svc orgs create --help\n",
  ],
  [
    ['orgs', 'create', 'x', '--plan', 'gold'],
    2,
    'svc: --plan: expected free, starter, pro, scale, self_host; got gold\n',
  ],
  [['orgs', 'delete', 'local'], 2, 'svc: the confirmation needs a terminal: repeat the command with --yes\n'],
  [
    ['envs', 'show', 'local/nope'],
    1,
    'svc: No environment "local/nope"; svc envs list local lists those that exist\n',
  ],
  [
    ['envs', 'show', 'local/dev/x'],
    1,
    'svc: No environment "local/dev/x"; svc envs list local lists those that exist\n',
  ],
] as const)
  orgs(`answers svc ${args.join(' ')} with code ${code}`, async () => {
    const ended = await svc(...args)
    const err = ended.err.replace(/^See http:\S+\n/m, '') // the page about the resource
    assert.equal({ ...ended, err }, { code, out: '', err: expected })
  })

const envs = suite('svc envs', { timeoutMs: 60_000 })

envs('creates, shows, lists and deletes an environment', async () => {
  await json('orgs', 'create', 'shop', '--plan', 'pro')
  const { env_id } = await json<Env>('envs', 'create', 'shop', 'prod')
  const key = await json<Key>('keys', 'create', 'shop/prod', '--name', 'ci')
  for (const name of ['shop/prod', env_id]) {
    const shown = await json<Env>('envs', 'show', name)
    assert.equal([shown.env_id, shown.org, shown.name], [env_id, 'shop', 'prod'])
    assert.equal(
      shown.api_keys.map(({ api_key_id }) => api_key_id),
      [key.api_key_id],
    )
  }
  const all = (await json<Env[]>('envs', 'list')).map(({ org, name }) => `${org}/${name}`)
  assert.ok(all.includes('shop/prod') && all.includes('local/dev'))
  assert.is((await json<Env[]>('envs', 'list', 'shop')).length, 1)
  assert.is((await svc('envs', 'delete', 'shop/prod', '--yes')).code, 0)
  assert.equal(await json<Env[]>('envs', 'list', 'shop'), [])
  assert.is(await statusOf(key.token), 401)
})

envs('creates an environment by the name that the other commands accept, and prints it so', async () => {
  const { org_id } = await json<Org>('orgs', 'create', 'both', '--plan', 'pro')
  assert.match(
    (await svc('envs', 'create', 'both/prod')).out,
    /^Created environment both\/prod \([0-9a-f-]{36}\)\n$/,
  )
  const stage = await json<Env>('envs', 'create', org_id, 'stage')
  assert.equal([stage.org, stage.name], ['both', 'stage'])
  assert.is((await json<Env>('envs', 'create', `${org_id}/test`)).org, 'both')
  for (const name of ['prod', 'stage', 'test'])
    assert.is((await json<Env>('envs', 'show', `both/${name}`)).name, name)
})

for (const args of [['local'], ['local/a', 'b'], ['local/a/b'], ['local/'], ['/a']])
  envs(`refuses svc envs create ${args.join(' ')} and says what it expects`, async () => {
    const { code, err } = await svc('envs', 'create', ...args)
    const got = args.map((arg) => `"${arg}"`).join(' ')
    assert.equal(
      [code, err],
      [2, `svc: expected ORGANIZATION/NAME, or ORGANIZATION and NAME, of the new environment, got ${got}\n`],
    )
  })

const keys = suite('svc keys', { timeoutMs: 60_000 })

keys('creates an API key whose token works, and shows the token once', async () => {
  const { out } = await svc(
    'keys',
    'create',
    'local/dev',
    '--name',
    'reader',
    '--permissions',
    '{"env:*":["read"]}',
  )
  const token = /^ {2}(svc_\S+)$/m.exec(out)?.[1] ?? ''
  assert.is(await statusOf(token), 200)
  const listed = await svc('keys', 'list', 'local/dev')
  assert.match(listed.out, /^reader +restricted +valid /m)
  assert.not.match(listed.out + (await svc('keys', 'list', 'local/dev', '--json')).out, token.slice(-49))
})

keys('rotates an API key: the former one is refused at once', async () => {
  const former = await json<Key>('keys', 'create', 'local/dev', '--permissions', '{"env:*":["read"]}')
  const next = await json<Key>('keys', 'rotate', former.api_key_id)
  assert.equal(
    [next.name, next.access, next.former.api_key_id],
    [former.name, 'restricted', former.api_key_id],
  )
  assert.equal([await statusOf(former.token), await statusOf(next.token)], [401, 200])
  assert.match((await svc('keys', 'list', 'local/dev')).out, new RegExp(`expired .*${former.api_key_id}`))
})

keys('rotates an API key with an overlap, in which both are valid', async () => {
  const former = await json<Key>('keys', 'create', 'local/dev')
  const { code, out } = await svc('keys', 'rotate', former.api_key_id, '--overlap', '1h')
  assert.is(code, 0)
  const token = /^ {2}(svc_\S+)$/m.exec(out)?.[1] ?? ''
  assert.equal([await statusOf(former.token), await statusOf(token)], [200, 200])
  assert.match((await svc('keys', 'list', 'local/dev')).out, /expires in (59 min|1 h)/)
})

keys('revokes an API key', async () => {
  const { api_key_id, token } = await json<Key>('keys', 'create', 'local/dev')
  assert.is((await svc('keys', 'revoke', api_key_id)).code, 2)
  assert.is(await statusOf(token), 200)
  assert.is((await svc('keys', 'revoke', api_key_id, '--yes')).code, 0)
  assert.is(await statusOf(token), 401)
})

keys('creates, lists and revokes service keys and sessions of SVC_API_KEY', async () => {
  for (const [kind, id] of [
    ['service', 'service_key_id'],
    ['session', 'session_id'],
  ] as const) {
    const args = ['--kind', kind, '--permissions', '{"run:*":["read"]}', '--expires-in', '10m']
    const created = await json<Record<string, string>>('keys', 'create', ...args)
    assert.match(created['token'] ?? '', created[id] ?? 'an id')
    const listed = await json<Record<string, string>[]>('keys', 'list', '--kind', kind)
    assert.ok(listed.some((each) => each[id] === created[id]))
    assert.match((await svc('keys', 'list', '--kind', kind)).out, /expires in (9 min|10 min)/)
    assert.is((await svc('keys', 'revoke', created[id] ?? '', '--kind', kind, '--yes')).code, 0)
  }
})

keys('creates, lists and revokes the service keys of a profile', async () => {
  const { token } = await json<Key>('keys', 'create', 'local/dev')
  const stored = { env: { XDG_CONFIG_HOME: tempDir() } }
  const login = await cli(['login', server.url, '--profile', 'prod'], { ...stored, input: token })
  assert.equal([login.code, login.err], [0, ''])
  const of = ['--kind', 'service', '--profile', 'prod']
  const { service_key_id: id = '' } = await cliJson<Record<string, string>>(
    ['keys', 'create', '--permissions', '{"run:*":["read"]}', ...of],
    stored,
  )
  const idsOf = async () =>
    (await cliJson<Record<string, string>[]>(['keys', 'list', ...of], stored)).map(
      (each) => each['service_key_id'],
    )
  assert.equal(await idsOf(), [id])
  const revoked = await cli(['keys', 'revoke', id, '--yes', ...of], stored)
  assert.equal([revoked.code, revoked.err], [0, ''])
})

for (const [args, code, expected] of [
  [['keys', 'list', 'local/dev', '--profile', 'x'], 2, /^svc: --profile: expected --kind service or session/],
  [
    ['keys', 'create', 'local/dev', '--profile', 'x'],
    2,
    /^svc: --profile: expected --kind service or session/,
  ],
  [['keys', 'revoke', newId(), '--yes', '--profile', 'x'], 2, /^svc: --profile: expected --kind service/],
  [['keys', 'list'], 2, /^svc: env: expected the environment .*\n$/],
  [['keys', 'list', 'local/dev', '--kind', 'service'], 2, /^svc: env: expected none/],
  [['keys', 'create', 'local/dev', '--permissions', '{'], 2, /^svc: --permissions: expected JSON/],
  [
    ['keys', 'create', 'local/dev', '--permissions', '{"x":["read"]}'],
    1,
    /^svc: .*Invalid resource.*\nSee http:\S+\n$/,
  ],
  [['keys', 'create', 'local/dev', '--expires-in', '1h'], 2, /^svc: --expires-in: /],
  [
    ['keys', 'create', '--kind', 'session', '--permissions', '{}', '--expires-in', '1y'],
    2,
    /^svc: --expires-in: .*90s/,
  ],
  [['keys', 'rotate', newId()], 1, /^svc: No API key /],
  [['keys', 'rotate', newId(), '--overlap', '400d'], 1, /^svc: overlap_s: /],
] as const)
  keys(`answers svc ${args.join(' ')} with code ${code} and one reason`, async () => {
    const ended = await svc(...args)
    assert.equal([ended.code, ended.out], [code, ''])
    assert.match(ended.err, expected)
  })

keys('does not repeat a token that is given instead of an id', async () => {
  const { token } = await json<Key>('keys', 'create', 'local/dev')
  const { code, out, err } = await svc('keys', 'rotate', token)
  assert.is(code, 2)
  assert.not.match(out + err, token.slice(-49))
  assert.is(await statusOf(token), 200)
})

keys('refuses a wrong operator token and a wrong API key with code 1', async () => {
  const env = { ...given.env, SVC_OPERATOR_TOKEN: 'x'.repeat(40), SVC_API_KEY: 'nope' }
  const [wrong, other] = [
    await cli(['keys', 'list', 'local/dev'], { env }),
    await cli(['keys', 'list', '--kind', 'service'], { env }),
  ]
  assert.equal([wrong.code, other.code], [1, 1])
  assert.is(wrong.err, `svc: ${server.url} refused the operator token; set SVC_OPERATOR_TOKEN\n`)
  assert.is(other.err, `svc: ${server.url} refused the API key in SVC_API_KEY; set a key of this service\n`)
})
keys.after(() => server.stop())

orgs.run()
envs.run()
keys.run()
