import { EventEmitter } from 'node:events'
import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { type Keyboard, readKeys } from '../../src/cli/dev/keys.ts'
import { readInstance } from '../../src/cli/instance.ts'
import { call } from '../support/build.ts'
import { cli, startCli } from '../support/cli.ts'
import { folderOf, save } from '../support/dev.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

const remote = suite('svc dev --to', { timeoutMs: 60_000 })

remote('deploys to another service, which continues after it', async () => {
  const server = await startServer()
  const { api } = server
  const folder = folderOf({ 'package.json': '{"name":"far"}', 'far.ts': 'export const far = () => 1\n' })
  const dev = startCli(['dev', folder, '--to', server.url], { env: { SVC_KEY: api.key } })
  await dev.shows('npx svc runs')
  assert.is((await call(api, 'far/far')).result, 1)
  await dev.shows('far/far  succeeded')
  assert.equal([readInstance(folder)?.url, readInstance(folder)?.project], [server.url, 'far'])
  copyFileSync(join(server.dataDir, 'secrets.json'), join(folder, '.svc/secrets.json')) // of a service of the folder
  const asked = await cli(['orgs', 'list'], { cwd: folder })
  assert.equal([asked.code, asked.out], [1, ''])
  assert.match(asked.err, `no operator token for ${server.url}; set SVC_OPERATOR_TOKEN`)
  save(folder, 'far.ts', 'export const far = () => 2\n')
  await until(() => dev.out().includes('saved far.ts'))
  assert.is((await call(api, 'far/far')).result, 2)
  dev.process.kill('SIGINT')
  assert.is(await dev.ended, 0)
  assert.is(readInstance(folder), null)
  assert.is((await call(api, 'far/far')).result, 2)
  await server.stop()
})

remote('needs a key, and no options of a service', async () => {
  const folder = folderOf({ 'far.ts': 'export const far = () => 1\n' })
  const keyless = await cli(['dev', folder, '--to', 'http://127.0.0.1:9'])
  assert.equal([keyless.code, keyless.err], [1, 'svc: --to: expected an API key in SVC_KEY, got none\n'])
  const both = await cli(['dev', folder, '--to', 'http://127.0.0.1:9', '--ephemeral'])
  assert.is(both.code, 2)
  assert.match(both.err, '--to: expected neither --port nor --ephemeral')
})
remote.run()

const keys = suite('the keys of svc dev')
keys('work one by one, without a line break, until they are released', () => {
  const modes: boolean[] = []
  const keyboard = Object.assign(new EventEmitter(), {
    setRawMode: (mode: boolean) => modes.push(mode),
    setEncoding() {},
    resume() {},
    pause() {},
  })
  const pressed: string[] = []
  const release = readKeys(keyboard as unknown as Keyboard, {
    r: () => pressed.push('r'),
    '\x03': () => pressed.push('Ctrl-C'),
  })
  for (const text of ['r', 'xr', '\x03']) keyboard.emit('data', text)
  release()
  keyboard.emit('data', 'r')
  assert.equal(pressed, ['r', 'r', 'Ctrl-C'])
  assert.equal(modes, [true, false])
})
keys.run()
