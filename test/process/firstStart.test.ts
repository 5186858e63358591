import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import * as assert from 'uvu/assert'
import { newApiToken } from '../../src/access/tokens.ts'
import { newId } from '../../src/ids.ts'
import { installation } from '../support/installation.ts'
import { spawnServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const SVC_API_KEY = newApiToken(newId())
const SVC_OPERATOR_TOKEN = 'operator-token-of-the-environment-1'

/** The entries of a folder, also in its folders, that other users may access. */
const openEntries = (dir: string): string[] =>
  readdirSync(dir, { withFileTypes: true, recursive: true })
    .map(({ parentPath, name }) => join(parentPath, name))
    .filter((path) => existsSync(path) && statSync(path).mode & 0o077)

const starts = suite('the first start')

starts('prints and stores no token that the environment provides', async () => {
  const server = await spawnServer({ env: { SVC_API_KEY, SVC_OPERATOR_TOKEN } })
  await server.end('SIGKILL')
  const stored = readFileSync(join(server.dataDir, 'secrets.json'), 'utf8')
  for (const text of [server.output.join(''), stored])
    for (const token of [SVC_API_KEY, SVC_OPERATOR_TOKEN]) assert.not.match(text, token)
  assert.not.match(server.output.join(''), 'not shown again')
})

starts('prints the tokens that it generates; the next one prints none', async () => {
  const first = await spawnServer()
  await first.end('SIGTERM')
  const stored = JSON.parse(readFileSync(join(first.dataDir, 'secrets.json'), 'utf8')) as Record<
    string,
    string
  >
  for (const name of ['api_key', 'operator_token'])
    assert.match(first.output.join(''), stored[name] ?? 'nothing')
  assert.not.match(first.output.join(''), stored['master_key'] ?? 'nothing')
  const second = await spawnServer({ dataDir: first.dataDir })
  await second.end('SIGTERM')
  for (const secret of Object.values(stored)) assert.not.match(second.output.join(''), secret)
})

starts('with too few open files is refused with the way to raise the limit', () => {
  const { status, stderr } = spawnSync(
    'sh',
    ['-c', 'ulimit -n 200; exec "$0" "$1"', process.execPath, MAIN],
    {
      env: installation(tempDir()),
      encoding: 'utf8',
    },
  )
  assert.match(stderr, /^svc: Too few open files: at most 200\. To fix it, raise the limit: .*ulimit -n\n$/)
  assert.is(status, 1)
})

starts('warns of a variable that has no effect', async () => {
  const server = await spawnServer({ env: { SVC_COLOUR: 'blue' } })
  await server.end('SIGTERM')
  assert.match(server.output.join(''), 'SVC_COLOUR is not a variable of svc and has no effect')
})

starts('leaves nothing in the data directory that other users may access', async () => {
  const dataDir = join(tempDir(), 'volume')
  mkdirSync(dataDir, { mode: 0o755 })
  const server = await spawnServer({ dataDir })
  await server.end('SIGKILL')
  assert.is(statSync(dataDir).mode & 0o777, 0o700)
  assert.equal(openEntries(dataDir), [])
})

starts('without the secrets of an existing log ends in one line, and creates none', async () => {
  const { dataDir, end } = await spawnServer()
  await end('SIGTERM')
  rmSync(join(dataDir, 'secrets.json'))
  const refused = await spawnServer({ dataDir }).then(
    () => new Error('Expected a refusal'),
    (error: unknown) => error as Error,
  )
  assert.match(refused.message, /exit code 1: svc: .*secrets\.json is missing.*\n$/)
  assert.not.match(refused.message, ' at ')
  assert.not(existsSync(join(dataDir, 'secrets.json')))
})
starts.run()
