import { once } from 'node:events'
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { writeInstance } from '../../src/cli/instance.ts'
import { answering } from '../support/answering.ts'
import { cli } from '../support/cli.ts'
import { folderOf, startDev } from '../support/dev.ts'
import { certificate, certificateKey } from '../support/localServers.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

interface Asked {
  readonly name: string
  readonly key: string
}

const env = { env_id: 'e', env_name: 'dev' }

/** A service that records the credentials of its requests. */
const serving = (asked: Asked[], name: string, use: (url: string) => Promise<void>): Promise<void> =>
  answering((request, response) => {
    asked.push({ name, key: (request.headers.authorization ?? '').replace('Bearer ', '') })
    const data = request.url === '/v1/sign-in' ? env : []
    const pagination = { total: 0, limit: 100, offset: 0, has_more: false }
    response.end(JSON.stringify(request.url === '/v1/sign-in' ? { data } : { data, pagination }))
  }, use)

const login = (config: string, url: string, key: string, ...args: readonly string[]) =>
  cli(['login', url, ...args, '--json'], { env: { XDG_CONFIG_HOME: config }, input: `${key}\n` })

const test = suite('the environment of a command', { timeoutMs: 120_000 })

test('is the one of SVC_URL, of a named profile, of svc dev, of the default profile, in this order', async () => {
  const asked: Asked[] = []
  const [config, folder] = [tempDir(), tempDir()]
  const below = join(folder, 'src')
  mkdirSync(below)
  await serving(asked, 'given', (given) =>
    serving(asked, 'dev', (dev) =>
      serving(asked, 'prod', (prod) =>
        serving(asked, 'last', async (last) => {
          assert.is((await login(config, prod, 'prod-key', '--profile', 'prod')).code, 0)
          assert.is((await login(config, last, 'last-key')).code, 0)
          const reach = async (args: readonly string[], variables: Readonly<Record<string, string>>) => {
            asked.length = 0
            const { code, err } = await cli(['runs', ...args], {
              env: { XDG_CONFIG_HOME: config, ...variables },
              cwd: below,
            })
            assert.equal([code, err], [0, ''])
            assert.is(asked.length, 1)
            return asked[0]
          }
          assert.equal(await reach([], {}), { name: 'last', key: 'last-key' })
          writeInstance(folder, { url: dev, key: 'dev-key', project: 'p', dataDir: null, pid: process.pid })
          assert.equal(await reach([], {}), { name: 'dev', key: 'dev-key' })
          assert.equal(await reach([], { SVC_KEY: 'own' }), { name: 'dev', key: 'own' })
          assert.equal(await reach([], { SVC_API_KEY: 'own' }), { name: 'dev', key: 'own' })
          assert.equal(await reach(['--profile', 'prod'], {}), { name: 'prod', key: 'prod-key' })
          assert.equal(await reach([], { SVC_PROFILE: 'prod' }), { name: 'prod', key: 'prod-key' })
          const both = { SVC_URL: given, SVC_KEY: 'k', SVC_PROFILE: 'prod' }
          assert.equal(await reach([], both), { name: 'given', key: 'k' })
        }),
      ),
    ),
  )
})

test('never gets a stored key that belongs to another address', async () => {
  const asked: Asked[] = []
  const [config, folder] = [tempDir(), tempDir()]
  await serving(asked, 'given', (given) =>
    serving(asked, 'stored', async (stored) => {
      await login(config, stored, 'stored-key')
      writeInstance(folder, { url: stored, key: 'dev-key', project: 'p', dataDir: null, pid: process.pid })
      asked.length = 0
      const { code, err } = await cli(['runs'], {
        env: { XDG_CONFIG_HOME: config, SVC_URL: given },
        cwd: folder,
      })
      assert.equal([code, asked], [1, []])
      assert.match(err, /^svc: no API key for http.*; set SVC_KEY/)
    }),
  )
})

test('never gets a key of a data directory that belongs to another address', async () => {
  const asked: Asked[] = []
  const folder = folderOf({ 'hello.ts': 'export const hello = () => 1\n' })
  await serving(asked, 'other', async (other) => {
    const dev = startDev(folder)
    await dev.next('functions')
    for (const args of [['runs'], ['orgs', 'list']]) {
      const { code, err } = await cli(args, { env: { XDG_CONFIG_HOME: folder, SVC_URL: other }, cwd: folder })
      assert.equal([code, asked], [1, []])
      assert.match(err, /^svc: no .* for http.*; set SVC_(KEY|OPERATOR_TOKEN), or set SVC_DATA_DIR/)
    }
    await dev.stop()
  })
})

test('that nothing names is explained with the ways to name one', async () => {
  const dataDir = join(tempDir(), 'none')
  const { code, err } = await cli(['runs'], { env: { SVC_DATA_DIR: dataDir, XDG_CONFIG_HOME: tempDir() } })
  assert.equal(
    [code, err],
    [
      1,
      `svc: no API key in ${dataDir}; start svc dev in this folder, store a service with svc login, or set SVC_URL and SVC_KEY\n`,
    ],
  )
})

test('is refused where --profile and SVC_URL name two, and where no such profile is stored', async () => {
  const both = await cli(['runs', '--profile', 'x'], { env: { SVC_URL: 'http://127.0.0.1:1' } })
  assert.equal(
    [both.code, both.err],
    [2, 'svc: --profile: expected no SVC_URL beside it, which names another service\n'],
  )
  const config = tempDir()
  for (const name of ['nope', '__proto__', 'toString']) {
    const { code, err } = await cli(['runs', '--profile', name], { env: { XDG_CONFIG_HOME: config } })
    assert.is(code, 1)
    assert.match(err, `profile: expected one of svc login (none), got "${name}"`)
  }
})

test('that does not answer, or refuses the key, is named with the fix', async () => {
  const gone = 'http://127.0.0.1:2' // a port of the system, which no other test is given
  const { code, err } = await cli(['runs'], { env: { SVC_URL: gone, SVC_KEY: 'k' } })
  assert.is(code, 1)
  assert.is(
    err,
    `svc: ${gone} does not answer: ECONNREFUSED: start it with svc dev or svc serve, or set SVC_URL\n`,
  )
  await answering(
    (_, response) => response.writeHead(401).end('{"error": {"code": "unauthorized", "message": "no"}}'),
    async (url) => {
      const folder = tempDir()
      writeInstance(folder, { url, key: 'dev-key', project: 'p', dataDir: null, pid: process.pid })
      const refused = await cli(['runs'], { env: { XDG_CONFIG_HOME: folder }, cwd: folder })
      assert.is(refused.code, 1)
      assert.match(refused.err, /refused the API key in .*dev\.json; restart svc dev\n$/)
    },
  )
})

/** Commands that list through `svc/client`: the first one repeats its requests, the second one does not. */
const LISTS = [['runs'], ['secrets', 'list', '--project', 'p']] as const

const refusedWith = async (
  handler: Parameters<typeof answering>[0],
  expected: (url: string) => string | RegExp,
): Promise<void> =>
  answering(handler, async (url) => {
    for (const args of LISTS) {
      const { code, out, err } = await cli(args, { env: { SVC_URL: url, SVC_KEY: 'k' } })
      assert.equal([code, out], [1, ''])
      assert.match(err, expected(url))
      assert.is(err.trimEnd().split('\n').length, 1)
    }
  })

test('whose service is another server, redirects, fails or breaks off is named', async () => {
  await refusedWith(
    (_, response) => response.end('<html>\x1b[2Jhello</html>'),
    (url) => `svc: ${url} is not svc: its reply is not JSON with data\n`,
  )
  await refusedWith(
    (_, response) => response.end('{"hello": 1}'),
    (url) => `svc: ${url} is not svc: its reply is not JSON with data\n`,
  )
  await refusedWith(
    (_, response) => response.writeHead(301, { location: 'https://other.example/' }).end(),
    (url) => `svc: ${url} replied 301: a redirect to https://other.example/\n`,
  )
  await refusedWith(
    (_, response) => response.writeHead(404).end('<html>\x1b[2Jno</html>'),
    (url) => `svc: ${url} replied 404: <html>\\u001b[2Jno</html>\n`,
  )
  await refusedWith(
    (_, response) =>
      response.writeHead(500).end('{"error": {"code": "x", "message": "It failed", "request_id": "r-1"}}'),
    (url) => `svc: ${url} replied 500: It failed (request r-1)\n`,
  )
  await refusedWith(
    (_, response) => {
      response.writeHead(200, { 'content-length': 100 }).write('{"data":')
      setImmediate(() => response.destroy())
    },
    (url) => `svc: the reply of the service at ${url} is incomplete (`,
  )
})

test('whose certificate is not trusted is named once, with the way to trust it', async () => {
  let connections = 0
  const server = createServer({ key: certificateKey, cert: certificate }, (_, response) => {
    response.end(
      JSON.stringify({ data: [], pagination: { total: 0, limit: 20, offset: 0, has_more: false } }),
    )
  })
  server.on('connection', () => connections++).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `https://localhost:${(server.address() as AddressInfo).port}`
  try {
    const fix = 'set NODE_EXTRA_CA_CERTS=FILE, a file with the certificate of the authority'
    const problem = `${url} has a certificate of an unknown authority: ${fix} (DEPTH_ZERO_SELF_SIGNED_CERT)`
    const variables = { SVC_URL: url, SVC_KEY: 'k', SVC_OPERATOR_TOKEN: 'operator-token'.repeat(3) }
    for (const command of [['runs'], ['orgs', 'list'], ['status']]) {
      connections = 0
      const { code, err, out } = await cli(command, { env: variables })
      assert.is(code, 1, out)
      assert.is(err, `svc: ${problem}\n`, command.join(' '))
      assert.is(connections, 1)
    }
    const file = join(tempDir(), 'authority.pem')
    writeFileSync(file, certificate)
    const { code, err } = await cli(['runs'], { env: { ...variables, NODE_EXTRA_CA_CERTS: file } })
    assert.equal([code, err], [0, ''])
  } finally {
    server.close()
    server.closeAllConnections()
  }
})

test('that is not available is asked as often as the command permits', async () => {
  const counts = LISTS.map(async (args) => {
    let asked = 0
    await answering(
      (_, response) => {
        asked++
        response.writeHead(503).end('{"error": {"code": "unavailable", "message": "Not now"}}')
      },
      async (url) => assert.is((await cli(args, { env: { SVC_URL: url, SVC_KEY: 'k' } })).code, 1),
    )
    return asked
  })
  assert.equal(await Promise.all(counts), [3, 1])
})

test('gets no name that would be another path', async () => {
  const asked: Asked[] = []
  await serving(asked, 'any', async (url) => {
    const args = ['secrets', 'list', '--project', '..']
    const { code, err } = await cli(args, { env: { SVC_URL: url, SVC_KEY: 'k' } })
    assert.equal([code, err], [2, 'svc: expected a name or an id, got ".."\n'])
    assert.equal(asked, [])
  })
})

const logins = suite('svc login', { timeoutMs: 60_000 })

logins('stores a profile that only this user can read', async () => {
  const config = tempDir()
  await serving([], 'any', async (url) => {
    const { out } = await login(config, `${url}/`, 'a-key', '--profile', 'one')
    assert.equal(JSON.parse(out), { profile: 'one', url, env_id: 'e', env: 'dev' })
    await login(config, url, 'b-key')
    const file = join(config, 'svc', 'profiles.json')
    assert.is(statSync(file).mode & 0o777, 0o600)
    assert.equal(JSON.parse(readFileSync(file, 'utf8')), {
      default: 'default',
      profiles: { one: { url, key: 'a-key' }, default: { url, key: 'b-key' } },
    })
  })
})

logins('without a URL sends the key to the service that other commands find', async () => {
  const asked: Asked[] = []
  const [config, folder] = [tempDir(), tempDir()]
  const nobody = { HOST: '127.0.0.1', PORT: '2' } // a port of the system, which no other test is given
  const again = async (args: readonly string[], variables: Readonly<Record<string, string>> = {}) => {
    asked.length = 0
    const { code, out, err } = await cli(['login', ...args, '--json'], {
      env: { XDG_CONFIG_HOME: config, ...nobody, ...variables },
      cwd: folder,
      input: 'new-key\n',
    })
    const stored = code === 0 ? (JSON.parse(out) as { url: string; profile: string }) : null
    return { asked: asked.map(({ name }) => name), profile: stored?.profile, url: stored?.url, err }
  }
  await serving(asked, 'dev', (dev) =>
    serving(asked, 'prod', (prod) =>
      serving(asked, 'last', async (last) => {
        assert.match((await again([])).err, 'http://127.0.0.1:2 does not answer')
        await login(config, prod, 'prod-key', '--profile', 'prod')
        await login(config, last, 'last-key', '--profile', 'last')
        const done = { err: '', asked: ['prod'], url: prod }
        assert.equal(await again(['--profile', 'prod']), { ...done, profile: 'prod' })
        assert.equal(await again([]), { ...done, profile: 'default' })
        assert.equal(await again([], { SVC_PROFILE: 'last' }), {
          err: '',
          asked: ['last'],
          url: last,
          profile: 'default',
        })
        writeInstance(folder, { url: dev, key: 'dev-key', project: 'p', dataDir: null, pid: process.pid })
        assert.equal(await again([]), { err: '', asked: ['dev'], url: dev, profile: 'default' })
        assert.equal(await again(['--profile', 'prod']), { ...done, profile: 'prod' })
        const unknown = await again(['--profile', 'new'])
        assert.equal(unknown.asked, [])
        assert.match(unknown.err, 'create it with svc login URL --profile NAME')
        const both = await again(['--profile', 'prod'], { SVC_URL: last })
        assert.equal(both.asked, [])
        assert.match(both.err, '--profile: expected no SVC_URL beside it')
      }),
    ),
  )
})

logins('stores nothing if the service refuses the key, or the key is none', async () => {
  const config = tempDir()
  await answering(
    (_, response) => response.writeHead(401).end('{"error": {"code": "unauthorized", "message": "no"}}'),
    async (url) => {
      const { code, err } = await login(config, url, 'wrong')
      assert.equal([code, err], [1, `svc: ${url} refused the API key; nothing was stored\n`])
      assert.is((await login(config, url, '')).code, 2)
      assert.is((await login(config, url, 'two words')).code, 2)
    },
  )
  assert.is((await login(config, 'ftp://x', 'k')).code, 2)
})

logins('names a damaged file of profiles', async () => {
  const config = tempDir()
  mkdirSync(join(config, 'svc'))
  writeFileSync(join(config, 'svc', 'profiles.json'), '{"default": 1}')
  const { code, err } = await cli(['runs'], { env: { XDG_CONFIG_HOME: config }, cwd: config })
  assert.is(code, 1)
  assert.match(err, /profiles\.json: expected the profiles of svc login/)
})

test.run()
logins.run()
