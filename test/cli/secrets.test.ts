import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { openSecrets } from '../../src/process/secretsFile.ts'
import { readConfig } from '../../src/process/config.ts'
import { cli, cliJson } from '../support/cli.ts'
import { EMBEDDED, installation } from '../support/installation.ts'
import { type ServerProcess, spawnServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

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
    const before = await cliJson<Record<string, unknown>>(['secrets', 'status'], { env })
    const { code, out, err } = await cli(['secrets', 'rotate-master', '--json'], { env })
    assert.equal([code, err], [0, ''])
    const after = JSON.parse(out) as Record<string, unknown>
    assert.equal([after['status'], after['remaining']], ['idle', 0])
    assert.is(after['previous_master_key_id'], before['master_key_id'])
    assert.match((await cli(['secrets', 'status'], { env })).out, /^Done: /)
  },
)

secrets('rotate-master takes the key of a file, and refuses one that is no key', async ({ env }) => {
  const file = join(tempDir(), 'new.key')
  writeFileSync(file, `${Buffer.alloc(32, 9).toString('base64')}\n`)
  assert.is((await cli(['secrets', 'rotate-master', '--key-file', file], { env })).code, 0)
  writeFileSync(file, 'short')
  const { code, err } = await cli(['secrets', 'rotate-master', '--key-file', file], { env })
  assert.is(code, 1)
  assert.match(err, 'master_key')
  const folder = tempDir()
  const unread = await cli(['secrets', 'rotate-master', '--key-file', folder], { env })
  assert.is(unread.code, 2)
  assert.match(unread.err, `svc: --key-file: ${folder}: cannot be read (EISDIR)`)
})

secrets('operator-token prints the token of this directory', async ({ server, env }) => {
  const config = readConfig(installation(server.dataDir, { ...EMBEDDED, SVC_MASTER_KEY: '' }))
  const { out } = await cli(['secrets', 'operator-token'], { env })
  assert.is(out, `${openSecrets(config).operatorToken}\n`)
})

secrets('with a wrong token ends with code 1', async ({ env }) => {
  const { code, err } = await cli(['secrets', 'status'], {
    env: { ...env, SVC_OPERATOR_TOKEN: 'x'.repeat(40) },
  })
  assert.is(code, 1)
  assert.match(err, 'SVC_OPERATOR_TOKEN')
})
secrets.run()
