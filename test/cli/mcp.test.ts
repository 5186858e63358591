import * as assert from 'uvu/assert'
import { writeInstance } from '../../src/cli/instance.ts'
import { writeProfile } from '../../src/cli/profiles.ts'
import { deploy } from '../support/build.ts'
import { cli, cliJson } from '../support/cli.ts'
import { spawnServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { connect, TOOLS } from '../api/mcp/client.ts'

interface Config {
  readonly mcpServers: {
    readonly svc: { readonly url: string; readonly headers: { readonly Authorization: string } }
  }
}

const server = await spawnServer()
await deploy(server.api, 'shop', TOOLS)
const env = { SVC_URL: server.url, SVC_KEY: server.api.key }

const test = suite('svc mcp', { timeoutMs: 120_000 })

test('prints a configuration that connects when SVC_KEY is put in its place', async () => {
  const { mcpServers } = await cliJson<Config>(['mcp'], { env })
  const { url, headers } = mcpServers.svc
  const authorization = headers.Authorization.replace('${SVC_KEY}', server.api.key)
  const { client } = await connect(url.replace(/\/mcp$/, ''), authorization.replace('Bearer ', ''))
  assert.ok((await client.listTools()).tools.some(({ name }) => name === 'ledger_shop_books'))
  await client.close()
})

test('prints no key, for any client', async () => {
  for (const [name, told] of [
    ['claude', '.mcp.json'],
    ['cursor', '.cursor/mcp.json'],
    ['vscode', '.vscode/mcp.json'],
  ] as const) {
    const { code, out } = await cli(['mcp', '--client', name], { env })
    assert.is(code, 0)
    assert.match(out, `${server.url}/mcp`)
    assert.match(out, told)
    assert.match(out, 'Put the key in')
    assert.not.match(out, server.api.key)
  }
})

test('names the service of the folder or of a profile, without any key', async () => {
  const folder = tempDir()
  writeInstance(folder, {
    url: 'http://127.0.0.1:4567',
    key: 'k1',
    project: 'p',
    dataDir: null,
    pid: process.pid,
  })
  const bare = { XDG_CONFIG_HOME: folder }
  const here = await cliJson<Config>(['mcp'], { env: bare, cwd: folder })
  assert.is(here.mcpServers.svc.url, 'http://127.0.0.1:4567/mcp')
  writeProfile(`${folder}/svc`, { name: 'prod', url: 'https://svc.example.com', key: 'k2' })
  const there = await cliJson<Config>(['mcp', '--profile', 'prod'], { env: bare, cwd: folder })
  assert.is(there.mcpServers.svc.url, 'https://svc.example.com/mcp')
})

test('refuses an unknown client', async () => {
  const { code, err } = await cli(['mcp', '--client', 'other'], { env })
  assert.equal([code, err], [2, 'svc: --client: expected one of claude, cursor, vscode, got other\n'])
})

test.after(() => server.stop())
test.run()
