import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import type { Instance } from '../../src/cli/instance.ts'
import { hasBubblewrap, insideOf, mounting, pidInside } from '../support/bubblewrap.ts'
import { call } from '../support/build.ts'
import { cli } from '../support/cli.ts'
import { folderOf, type RunningDev, save, startDev } from '../support/dev.ts'
import { openApi } from '../support/http.ts'
import { fill } from '../support/smallDisk.ts'
import { suite } from '../support/suite.ts'

const versionIs = (version: number): string => `export const version = () => ${version}\n`
const project = () => folderOf({ 'package.json': '{"name":"orders"}', 'src/a.ts': versionIs(1) })

/** Bytes of the file system with the data of the service. */
const SMALL = 24 << 20

/** Starts `svc dev` with its data in a small file system of its own, of which some bytes are taken already. */
const startOnSmallDisk = (folder: string, { taken = 0 } = {}) => {
  const data = join(folder, '.svc')
  mkdirSync(data)
  const dev = startDev(folder, [], {}, [
    ...mounting('--perms', '0700', '--size', String(SMALL), '--tmpfs', data),
    'sh',
    '-c',
    'umask 077; head -c "$1" /dev/zero > "$0/filler"; shift; exec "$@"',
    data,
    String(taken),
  ])
  return { dev, root: () => insideOf(dev.process.pid, folder) }
}

/** A signal for bubblewrap would not reach it. */
const stop = ({ process: { pid }, ended }: RunningDev) => {
  process.kill(pidInside(pid), 'SIGTERM')
  return ended
}

/** Reads the announcement itself: SQLite follows `/proc/PID/root` to the folder outside, so the lock cannot be seen from here. */
const apiOf = (folder: string) => {
  const { url, key } = JSON.parse(readFileSync(join(folder, '.svc/dev.json'), 'utf8')) as Instance
  return openApi(url, key)
}

const full = suite('svc dev on a full disk', { timeoutMs: 120_000 })
const test = hasBubblewrap ? full : full.skip

test('says so, keeps the last good build, and makes the save live when there is room', async () => {
  const folder = project()
  const { dev, root } = startOnSmallDisk(folder)
  const { build_id } = await dev.next('live')
  await dev.next('functions')
  const api = apiOf(root())
  fill(join(root(), '.svc/filler'))

  save(folder, 'src/a.ts', versionIs(2))
  const failed = await dev.next('failed')
  assert.is(failed['live'], build_id)
  assert.match(JSON.stringify(failed['messages']), 'The disk of the service is full')
  const deployed = await api.get<{ build_id: string }>('/projects/orders/builds/deployed')
  assert.is(deployed.build_id, build_id)

  rmSync(join(root(), '.svc/filler'))
  const live = await dev.next('live')
  assert.equal(live['paths'], ['src/a.ts'])
  assert.is((await call(api, 'a/version')).result, 2)
  assert.is(await stop(dev), 0)
})

test('says at its start for what the service waits, and continues when there is room', async () => {
  const folder = project()
  const { dev, root } = startOnSmallDisk(folder, { taken: SMALL - (256 << 10) })
  const stalled = await dev.next('stalled')
  assert.match(String(stalled['reason']), 'database or disk is full')
  assert.is(stalled['data'], join(folder, '.svc'))
  rmSync(join(root(), '.svc/filler'))
  await dev.next('resumed')
  await dev.next('live')
  assert.is((await call(apiOf(root()), 'a/version')).result, 1)
  assert.is(await stop(dev), 0)
})

full.run()

const readOnly = suite('svc dev in a folder that cannot be written', { timeoutMs: 120_000 })
const readOnlyTest = hasBubblewrap ? readOnly : readOnly.skip

const readOnlyMount = (folder: string) => mounting('--ro-bind', folder, folder)

readOnlyTest('deploys with --ephemeral, and prints how other commands find the service', async () => {
  const folder = project()
  const dev = startDev(folder, ['--ephemeral'], {}, readOnlyMount(folder))
  const { reason, variables } = await dev.next('unannounced')
  assert.match(String(reason), 'read-only file system')
  await dev.next('live')
  const env = Object.fromEntries((variables as string[]).map((each) => each.split('=') as [string, string]))
  const { code, out, err } = await cli(['run', 'a/version'], { cwd: folder, env })
  assert.equal([code, out.trim()], [0, '1'], err)
  save(folder, 'src/a.ts', versionIs(2))
  await dev.next('live')
  assert.is(dev.lines().filter(({ type }) => type === 'unannounced').length, 1)
  assert.equal(readdirSync(folder).sort(), ['package.json', 'src'])
  assert.is(await stop(dev), 0)
})

readOnlyTest('is refused with one line without --ephemeral', async () => {
  const folder = project()
  const dev = startDev(folder, [], {}, readOnlyMount(folder))
  assert.is(await dev.ended, 1)
  assert.match(dev.err(), /^svc: .*read-only file system.*\n$/)
  assert.match(dev.err(), '--ephemeral')
  assert.not(existsSync(join(folder, '.svc')))
})

readOnly.run()
