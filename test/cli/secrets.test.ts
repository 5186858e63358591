import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import * as assert from 'uvu/assert'
import { openSecrets } from '../../src/process/secretsFile.ts'
import { readConfig } from '../../src/process/config.ts'
import { installation } from '../support/installation.ts'
import { type ServerProcess, spawnServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

const svc = fileURLToPath(new URL('../../bin/svc.js', import.meta.url))

interface Ended {
  readonly code: number
  readonly out: string
  readonly err: string
}

const cli = (args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ended> =>
  new Promise((resolve) => {
    execFile(
      process.execPath,
      [svc, ...args],
      { env: { PATH: process.env['PATH'], ...env } },
      (error, out, err) => resolve({ code: typeof error?.code === 'number' ? error.code : 0, out, err }),
    )
  })

const usage = suite('svc')

usage('explains itself, its groups and its commands, with examples', async () => {
  for (const args of [
    [],
    ['--help'],
    ['secrets'],
    ['secrets', '--help'],
    ['secrets', 'rotate-master', '--help'],
  ]) {
    const { code, out, err } = await cli(args)
    assert.equal([code, err], [0, ''])
    assert.match(out, 'svc secrets rotate-master')
    assert.match(out, 'SVC_OPERATOR_TOKEN')
  }
  assert.match((await cli(['secrets', 'rotate-master', '--help'])).out, 'Examples:')
})

for (const args of [
  ['nope'],
  ['secrets', 'nope'],
  ['secrets', 'status', '--nope'],
  ['secrets', 'status', 'more'],
])
  usage(`ends ${args.join(' ')} with code 2 and one line`, async () => {
    const { code, out, err } = await cli(args)
    assert.equal([code, out], [2, ''])
    assert.match(err, /^svc: .*--help\n$/)
  })

usage('without a service ends with code 1 and one line that names the address', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  const env = { SVC_URL: `http://127.0.0.1:${port}`, SVC_OPERATOR_TOKEN: 'x'.repeat(32) }
  const { code, err } = await cli(['secrets', 'status'], env)
  assert.is(code, 1)
  assert.match(err, new RegExp(`^svc: http://127.0.0.1:${port} does not answer .ECONNREFUSED.*SVC_URL\n$`))
})

usage('without an operator token ends with code 1, and creates no secrets', async () => {
  const SVC_DATA_DIR = join(tempDir(), 'none')
  const { code, err } = await cli(['secrets', 'operator-token'], { SVC_DATA_DIR })
  assert.is(code, 1)
  assert.match(err, /^svc: no operator token .*SVC_OPERATOR_TOKEN.*\n$/)
})
usage.run()

const EMBEDDED = {
  SVC_EVENT_STORE: 'embedded:',
  SVC_READ_MODELS: 'embedded:',
  SVC_BLOBS: 'embedded:',
  SVC_REDIS: '',
}

const secrets = suite<{ server: ServerProcess; env: Record<string, string> }>('svc secrets', {
  timeoutMs: 60_000,
})

secrets.before(async (context) => {
  const server = await spawnServer({ env: { ...EMBEDDED, SVC_MASTER_KEY: '' } })
  Object.assign(context, { server, env: { SVC_URL: server.url, SVC_DATA_DIR: server.dataDir } })
})
secrets.after(({ server }) => server.stop())

secrets(
  'rotate-master replaces the master key of the service in this directory, and waits for the end',
  async ({ env }) => {
    const before = JSON.parse((await cli(['secrets', 'status', '--json'], env)).out) as Record<
      string,
      unknown
    >
    const { code, out, err } = await cli(['secrets', 'rotate-master', '--json'], env)
    assert.equal([code, err], [0, ''])
    const after = JSON.parse(out) as Record<string, unknown>
    assert.equal([after['status'], after['remaining']], ['idle', 0])
    assert.is(after['previous_master_key_id'], before['master_key_id'])
    assert.match((await cli(['secrets', 'status'], env)).out, /^Done: /)
  },
)

secrets('rotate-master takes the key of a file, and refuses one that is no key', async ({ env }) => {
  const file = join(tempDir(), 'new.key')
  writeFileSync(file, `${Buffer.alloc(32, 9).toString('base64')}\n`)
  assert.is((await cli(['secrets', 'rotate-master', '--key-file', file], env)).code, 0)
  writeFileSync(file, 'short')
  const { code, err } = await cli(['secrets', 'rotate-master', '--key-file', file], env)
  assert.is(code, 1)
  assert.match(err, 'master_key')
})

secrets('operator-token prints the token of this directory', async ({ server, env }) => {
  const config = readConfig(installation(server.dataDir, { ...EMBEDDED, SVC_MASTER_KEY: '' }))
  const { out } = await cli(['secrets', 'operator-token'], env)
  assert.is(out, `${openSecrets(config).operatorToken}\n`)
})

secrets('with a wrong token ends with code 1', async ({ env }) => {
  const { code, err } = await cli(['secrets', 'status'], { ...env, SVC_OPERATOR_TOKEN: 'x'.repeat(40) })
  assert.is(code, 1)
  assert.match(err, 'SVC_OPERATOR_TOKEN')
})
secrets.run()
