import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { checked } from '../../src/process/checks/check.ts'
import { checkClock, leastSkewMs } from '../../src/process/checks/clock.ts'
import { checkDataDir } from '../../src/process/checks/dataDir.ts'
import type { Config } from '../../src/process/config.ts'
import { checkEngines } from '../../src/process/checks/engines.ts'
import { checkNodeVersion, inodesOf, openFilesOf, roomOf } from '../../src/process/checks/machine.ts'
import { checkSandbox } from '../../src/process/checks/sandbox.ts'
import { checkStoredKeys } from '../../src/process/checks/storedKeys.ts'
import { openSecrets } from '../../src/process/secretsFile.ts'
import { startFakeS3 } from '../support/fakeS3.ts'
import { EMBEDDED } from '../support/installation.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

const GIB = 2 ** 30
type Keys = Pick<Config, 'masterKey' | 'previousMasterKey'>
const noKeys: Keys = { masterKey: null, previousMasterKey: null }
const storedKeyOf = (dataDir: string): string =>
  (JSON.parse(readFileSync(join(dataDir, 'secrets.json'), 'utf8')) as { master_key: string }).master_key
const noTokens = { apiKey: null, operatorToken: null }

const machine = suite('checks of the machine')

machine('ask for room before the disk is full', () => {
  const states = [10 * GIB, GIB, GIB / 8].map((free) => roomOf('/data', { free, all: 100 * GIB }).state)
  assert.equal(states, ['ok', 'warning', 'failed'])
})

machine('notice a disk without inodes, and file systems that have no number of them', () => {
  assert.equal(
    [
      { free: 5, all: 1e6 },
      { free: 5e5, all: 1e6 },
      { free: 0, all: 0 },
    ].map((inodes) => inodesOf(inodes).length),
    [1, 0, 0],
  )
})

machine('ask for enough open files', () => {
  assert.equal(
    [Infinity, 65_536, 4096, 256].map((limit) => openFilesOf(limit).state),
    ['ok', 'ok', 'warning', 'failed'],
  )
})

machine('ask for the version of Node that runs the service', () => {
  assert.equal(
    ['26.10.0', '27.0.0', '20.1.0'].map((version) => checkNodeVersion(version).state),
    ['ok', 'ok', 'failed'],
  )
})

machine('accept the process tier only where the operator has chosen it', () => {
  const weak = { tier: 'process', reason: 'the namespace tier does not work: bubblewrap is not installed' }
  assert.equal([checkSandbox(weak, 'auto').state, checkSandbox(weak, 'process').state], ['warning', 'ok'])
  assert.is(checkSandbox({ tier: 'namespace', reason: 'works' }, 'auto').state, 'ok')
})

machine('report a check that fails or has a defect, instead of ending', async () => {
  const [found] = await checked('disk', 'do this', () => Promise.reject(new Error('EIO')))
  assert.equal(found, { name: 'disk', state: 'failed', detail: 'EIO', fix: 'do this' })
})

const clocks = suite('checks of clocks')

clocks('count only the difference that the duration of the question does not explain', () => {
  const asked = { began: 10_000, ended: 13_000 }
  const skew = (time: number, resolutionMs = 1) => leastSkewMs({ time, resolutionMs }, asked)
  assert.equal([skew(10_000), skew(12_000), skew(13_000)], [0, 0, 0])
  assert.equal([skew(18_000), skew(4999)], [5000, -5000])
  assert.is(skew(9000, 1000), 0) // the time was rounded down to a second
})

clocks('warn from seconds on, and fail from minutes on', () => {
  assert.equal(
    [0, 1999, -5000, 400_000, -400_000].map((skewMs) => checkClock('S3', skewMs).state),
    ['ok', 'ok', 'warning', 'failed', 'failed'],
  )
  assert.is(checkClock('S3', -5000).detail, 'at least 5 s behind this machine')
})

const dirs = suite('checks of the data directory')
const stateOf = (dataDir: string, keys = noKeys) =>
  Object.fromEntries(checkDataDir({ dataDir, ...keys }).map(({ name, state }) => [name, state]))

dirs('accept a directory that does not exist yet, and do not create it', () => {
  const dataDir = join(tempDir(), 'new')
  assert.equal(stateOf(dataDir), { 'data directory': 'ok', 'master key': 'ok' })
  assert.not(existsSync(dataDir))
})

dirs('notice other users, and leave the modes as they are', () => {
  const dataDir = tempDir()
  openSecrets({ dataDir, ...noKeys, ...noTokens })
  assert.equal(stateOf(dataDir), { 'data directory': 'ok', 'master key': 'ok' })
  chmodSync(dataDir, 0o755)
  const file = join(dataDir, 'secrets.json')
  chmodSync(file, 0o644)
  assert.equal(stateOf(dataDir), { 'data directory': 'warning', 'master key': 'failed' })
  assert.is(statSync(file).mode & 0o777, 0o644)
})

dirs('notice secrets that are missing beside the data, or damaged, and print none of them', () => {
  const dataDir = tempDir()
  writeFileSync(join(dataDir, 'log.db'), '')
  assert.is(stateOf(dataDir)['master key'], 'failed')
  writeFileSync(join(dataDir, 'secrets.json'), '{"master_key": "hunter2"}', { mode: 0o600 })
  const [, found] = checkDataDir({ dataDir, ...noKeys })
  assert.is(found?.state, 'failed')
  assert.match(found?.detail ?? '', /master_key is invalid/)
  assert.not.match(JSON.stringify(found), 'hunter2')
})

dirs('a data directory that cannot be created or written has failed', () => {
  const file = join(tempDir(), 'file')
  writeFileSync(file, '')
  const [below] = checkDataDir({ dataDir: join(file, 'svc'), ...noKeys })
  assert.equal([below?.state, below?.detail], ['failed', `${file} is not a directory`])
  if (process.getuid?.() === 0) return // root can write everywhere
  const closed = tempDir()
  chmodSync(closed, 0o500)
  for (const dataDir of [closed, join(closed, 'svc')]) {
    const [found] = checkDataDir({ dataDir, ...noKeys })
    assert.is(found?.state, 'failed')
    assert.match(found?.detail ?? '', `cannot write in ${closed}`)
  }
})

dirs('remind of a former master key', () => {
  const keys: Keys = { masterKey: Buffer.alloc(32, 1), previousMasterKey: Buffer.alloc(32, 2) }
  assert.is(stateOf(tempDir(), keys)['former master key'], 'warning')
})

dirs('compare the master key with the keys that are stored, while a service uses them', async () => {
  const server = await startServer({ env: { ...EMBEDDED, SVC_MASTER_KEY: '' } })
  const given = { ...noKeys, dataDir: server.dataDir, blobs: 'embedded:' }
  const states = async (config: typeof given) => (await checkStoredKeys(config)).map(({ state }) => state)
  try {
    assert.equal(await states(given), ['ok'])
    const [found] = await checkStoredKeys({ ...given, masterKey: Buffer.alloc(32, 5) })
    assert.is(found?.state, 'failed')
    assert.match(
      found?.detail ?? '',
      /^they need the master key [0-9a-f]{16}, and [0-9a-f]{16} is configured$/,
    )
    const right = Buffer.from(storedKeyOf(server.dataDir), 'base64')
    const rotating = { masterKey: Buffer.alloc(32, 5), previousMasterKey: right }
    assert.equal(await states({ ...given, ...rotating }), ['ok'])
  } finally {
    await server.stop()
  }
  assert.equal(await states({ ...given, dataDir: tempDir() }), [])
})

dirs('report damaged secrets once, with their own remedy', async () => {
  const dataDir = tempDir()
  writeFileSync(join(dataDir, 'secrets.json'), '{')
  assert.is(stateOf(dataDir)['master key'], 'failed')
  assert.equal(await checkStoredKeys({ ...noKeys, dataDir, blobs: 'embedded:' }), [])
})

const engines = suite('checks of engines')
const embedded = { eventStore: 'embedded:', readModels: 'embedded:', blobs: 'embedded:', redis: null }

engines('that are embedded and do not run read their files, and write none', async () => {
  const dataDir = tempDir()
  assert.ok((await checkEngines({ ...embedded, dataDir }, null)).every(({ state }) => state === 'ok'))
  writeFileSync(join(dataDir, 'log.db'), 'not a database of SQLite')
  mkdirSync(join(dataDir, 'blobs'))
  const [log, models, blobs] = await checkEngines({ ...embedded, dataDir }, null)
  assert.equal([log?.state, models?.state, blobs?.state], ['failed', 'ok', 'ok'])
  assert.equal(readdirSync(dataDir).sort(), ['blobs', 'log.db'])
})

engines('that do not answer fail with the address and without the password; Redis only warns', async () => {
  const found = await checkEngines(
    {
      eventStore: 'esdb://svc:hunter2@127.0.0.1:1?tls=false',
      readModels: 'mongodb://svc:hunter2@127.0.0.1:1/models',
      blobs: 's3://KEY:hunter2@127.0.0.1:1/bucket?tls=false',
      redis: 'redis://svc:hunter2@127.0.0.1:1',
      dataDir: tempDir(),
    },
    null,
  )
  assert.equal(
    found.map(({ name, state }) => [name, state]),
    [
      ['event store', 'failed'],
      ['read models', 'failed'],
      ['blobs', 'failed'],
      ['Redis', 'warning'],
    ],
  )
  for (const { detail, fix } of found) {
    assert.match(detail, '127.0.0.1')
    assert.match(fix ?? '', /correct SVC_/)
  }
  assert.not.match(JSON.stringify(found), 'hunter2')
})

engines('compare the clock of S3 with that of this machine', async () => {
  const past = new Date(Date.now() - 3_600_000).toUTCString()
  const headers = { date: past }
  const s3 = await startFakeS3(({ what }) =>
    what === 'GET list' ? undefined : { status: 200, headers, body: '' },
  )
  try {
    const found = await checkEngines({ ...embedded, blobs: s3.url, dataDir: tempDir() }, null)
    const skew = found.find(({ name }) => name === 'clock of blobs')
    assert.is(skew?.state, 'failed')
    assert.match(skew?.detail ?? '', /^at least 3\d\d\d s behind this machine$/)
    assert.is(found.find(({ name }) => name === 'blobs')?.state, 'ok')
  } finally {
    await s3.close()
  }
})

machine.run()
clocks.run()
dirs.run()
engines.run()
