/** No user can create a folder in `/proc`, also not the superuser. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { newId } from '../../src/ids.ts'
import { answering } from '../support/answering.ts'
import { cli } from '../support/cli.ts'
import { EMBEDDED } from '../support/installation.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

const NOWHERE = '/proc/svc'

const unwritable = suite('svc in a folder that cannot be written', { timeoutMs: 60_000 })
const test = existsSync('/proc/self/task') ? unwritable : unwritable.skip

/** Ends with 1 and one line that names the folder. */
const refuses = async (args: readonly string[], env: Record<string, string> = {}, input = '') => {
  const { code, out, err } = await cli(args, { env, input })
  assert.equal([code, out], [1, ''], err)
  assert.match(err, /^svc: .*'?\/proc\/.*\n$/)
  assert.is(err.split('\n').length, 2, err)
}

test('creates no project', async () => {
  await refuses(['init', NOWHERE])
  await refuses(['init', join(NOWHERE, 'a/b')])
})

test('starts no service', async () => {
  await refuses(['dev', '/proc/self/task'], EMBEDDED)
  await refuses(['serve'], { ...EMBEDDED, SVC_DATA_DIR: NOWHERE })
})

test('writes no types and no build', async () => {
  const folder = tempDir()
  mkdirSync(join(folder, 'src'))
  writeFileSync(join(folder, 'src/a.ts'), 'export const a = () => 1\n')
  await refuses(['types', folder, '--out', NOWHERE])
  await refuses(['build', folder, '--out', NOWHERE])
})

test('writes no backup of a running service', async () => {
  const begun = { data: { backup_id: newId(), log_id: newId(), position: 0, created_at: '' } }
  await answering(
    (_, response) => response.end(JSON.stringify(begun)),
    (SVC_URL) => refuses(['backup', NOWHERE], { SVC_URL, SVC_OPERATOR_TOKEN: newId() }),
  )
})

test('stores no profile', async () => {
  await answering(
    (_, response) => response.end('{"data": {"env_id": "e", "name": "dev"}}'),
    (url) => refuses(['login', url], { XDG_CONFIG_HOME: NOWHERE }, 'a-key\n'),
  )
})

unwritable.run()
