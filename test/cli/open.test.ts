import * as assert from 'uvu/assert'
import { runCli } from '../../src/cli/cli.ts'
import { newSession } from '../api/issuing.ts'
import { cli, cliJson } from '../support/cli.ts'
import { openVisitor } from '../support/dashboard.ts'
import { spawnServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'

const server = await spawnServer()
const env = { SVC_URL: server.url, SVC_KEY: server.api.key }

const ticketIn = (url: string): string => new URL(url).hash.replace('#ticket=', '')
const signsIn = async (url: string): Promise<number> =>
  (await openVisitor(server.url).send('POST', '/v1/sign-in', { body: { ticket: ticketIn(url) } })).status

const test = suite('svc open', { timeoutMs: 120_000 })

test('prints a URL that signs in once and does not contain the key', async () => {
  const { code, out } = await cli(['open'], { env })
  assert.is(code, 0)
  assert.ok(out.startsWith(`${server.url}/ui#ticket=`), out)
  assert.not.match(out, server.api.key)
  assert.equal([await signsIn(out.trim()), await signsIn(out.trim())], [200, 401])
})

test('names a page of the dashboard', async () => {
  const { url } = await cliJson<{ url: string }>(['open', '/runs/abc'], { env })
  assert.ok(url.startsWith(`${server.url}/ui/runs/abc#ticket=`), url)
})

test('refuses a path that leaves the dashboard', async () => {
  for (const page of ['../webhook/a', 'runs/..', 'a#b', 'a?b', '%2e%2e/docs', 'a b', '\\a']) {
    const { code, out, err } = await cli(['open', page], { env })
    assert.equal([code, out], [2, ''], page)
    assert.match(err, 'page: expected the path of a page, such as runs/RUN_ID')
  }
})

test('needs an API key', async () => {
  const { token } = await newSession(server.api, { 'run:*': ['read'] })
  const { code, err } = await cli(['open'], { env: { ...env, SVC_KEY: token } })
  assert.is(code, 1)
  assert.match(err, 'Only an API key')
})

test('opens the URL for a person at a terminal, and not with --json', async () => {
  const before = { ...process.env }
  Object.assign(process.env, env)
  const opened: string[] = []
  const run = async (args: readonly string[]): Promise<string> => {
    let out = ''
    const terminal = {
      out: (text: string) => Promise.resolve(void (out += text)),
      err: () => {},
      columns: Infinity,
      progressColumns: null,
      ask: null,
      askHidden: null,
      browse: (url: string) => void opened.push(url),
      input: () => Promise.resolve(''),
      paint: (_: string, text: string) => text,
    }
    assert.is(await runCli(args, { terminal, signal: new AbortController().signal }), 0)
    return out
  }
  try {
    const out = await run(['open', 'runs'])
    assert.equal(opened, [out.trim()])
    await run(['open', '--json'])
    assert.is(opened.length, 1)
  } finally {
    for (const name of Object.keys(env)) delete process.env[name]
    Object.assign(process.env, before)
  }
})

test.after(server.stop)
test.run()
