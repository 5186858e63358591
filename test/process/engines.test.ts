import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import * as assert from 'uvu/assert'
import { engineUrl } from '../support/engines.ts'
import { startStandIn } from '../support/eventstoredb/index.ts'
import { codeCache } from '../support/codeCache.ts'
import { freePort } from '../support/freePort.ts'
import { SLACK } from '../support/patience.ts'
import { suite } from '../support/suite.ts'
import { together } from '../support/together.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const SVC_MASTER_KEY = Buffer.alloc(32, 7).toString('base64')
const environment = (env: Readonly<Record<string, string>>) => ({
  PORT: '0',
  SVC_LOG_FORMAT: 'text',
  SVC_DATA_DIR: tempDir(),
  SVC_MASTER_KEY,
  ...env,
})

const refusals = suite('settings of engines that cannot work', { timeoutMs: 60_000 })
const refusing = together(refusals)

/** Starts a service that cannot work; resolves with everything that it prints to stderr. */
const failed = async (env: Readonly<Record<string, string>>): Promise<string> => {
  const child = spawn(process.execPath, [...codeCache, main], {
    env: environment(env),
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 50_000 * SLACK,
  })
  const [[status], stdout, stderr] = await Promise.all([
    once(child, 'close') as Promise<[number | null]>,
    text(child.stdout),
    text(child.stderr),
  ])
  assert.is(status, 1, stdout + stderr)
  return stderr
}

const wrong: readonly [string, Readonly<Record<string, string>>, RegExp][] = [
  [
    'an event store of a kind that is not known',
    { SVC_EVENT_STORE: 'kafka://u:planted@h' },
    /SVC_EVENT_STORE: expected `embedded:` or `esdb:/,
  ],
  [
    'read models of a kind that is not known',
    { SVC_READ_MODELS: 'postgres://u:planted@h' },
    /SVC_READ_MODELS: expected `embedded:` or `mongodb:/,
  ],
  [
    'blobs of a kind that is not known',
    { SVC_BLOBS: 'file:///tmp' },
    /SVC_BLOBS: expected `embedded:` or `s3:/,
  ],
  ['a Redis of a kind that is not known', { SVC_REDIS: 'memcached://h' }, /SVC_REDIS: expected `redis:/],
  ['roles that are none', { SVC_ROLES: 'api,cook' }, /SVC_ROLES: expected some of api,worker,projector,saga/],
  [
    'an engine without a master key',
    { SVC_EVENT_STORE: 'esdb://h', SVC_MASTER_KEY: '' },
    /SVC_MASTER_KEY: required/,
  ],
  [
    'a prefix that no name can have',
    { SVC_EVENT_STORE: 'esdb://h?prefix=%20' },
    /SVC_EVENT_STORE: expected a prefix/,
  ],
  [
    'a port of an event store that does not exist',
    { SVC_EVENT_STORE: 'esdb://u:planted@h:99999' },
    /SVC_EVENT_STORE: expected host names or IPv4 addresses, each with a port from 1 to 65535/,
  ],
  [
    'an option that the client of the event store does not have',
    { SVC_EVENT_STORE: 'esdb://u:planted@127.0.0.1:1?tlsVerifyCert=false' },
    /SVC_EVENT_STORE: expected no other options than prefix, .*got esdb:/,
  ],
  [
    'roots of an authority that are no file',
    { SVC_ACME_URL: 'https://h', SVC_ACME_ACCEPT_TERMS: '1', SVC_ACME_CA: '/' },
    /SVC_ACME_CA: \/: cannot be read \(EISDIR\)/,
  ],
  [
    'roots of an authority that are no certificates',
    { SVC_ACME_URL: 'https://h', SVC_ACME_ACCEPT_TERMS: '1', SVC_ACME_CA: import.meta.filename },
    /SVC_ACME_CA: expected a file with the certificates of the authority as PEM, got \//,
  ],
  [
    'a data directory that is a file',
    { SVC_DATA_DIR: process.execPath },
    /SVC_DATA_DIR: expected a directory, got a file or a path below one: \//,
  ],
  ['an S3 address without a bucket', { SVC_BLOBS: 's3://key:planted@127.0.0.1:1' }, /SVC_BLOBS/],
]
for (const [what, env, said] of wrong) {
  refusing(what, async () => {
    const printed = await failed(env)
    assert.match(printed, said)
    assert.not.match(printed, 'planted')
    assert.not.match(printed, / at .*:\d+:\d+/) // a line for people, no stack
  })
}

const s3 = engineUrl('s3')
if (s3 !== null) {
  refusing('a bucket that is missing', async () => {
    assert.match(
      await failed({ SVC_BLOBS: s3.replace(/(:\d+)\/[^/?]+/, '$1/not-there') }),
      /SVC_BLOBS: .*not-there/,
    )
  })
  refusing('a secret that is wrong', async () => {
    const printed = await failed({ SVC_BLOBS: s3.replace(/:[^:@/]+@/, ':planted-secret@') })
    assert.match(printed, /SVC_BLOBS: /)
    assert.not.match(printed, 'planted-secret')
  })
}

refusals.run()

/** Starts a service whose event store is down; `printed` returns its output so far. */
const startWaiting = async () => {
  const [port, storePort] = [await freePort(), await freePort()]
  const url = `esdb://user:planted@127.0.0.1:${storePort}?tls=false`
  const child = spawn(process.execPath, [...codeCache, main], {
    env: environment({ SVC_EVENT_STORE: url, PORT: String(port) }),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let printed = ''
  for (const pipe of [child.stdout, child.stderr])
    pipe.setEncoding('utf8').on('data', (text: string) => (printed += text))
  const ended = once(child, 'exit') as Promise<[number | null]>
  const at = (path: string) => fetch(`http://127.0.0.1:${port}${path}`)
  await until(async () => (await at('/healthz')).status === 200, { timeoutMs: 60_000 })
  return { child, storePort, at, ended, printed: () => printed }
}

const waiting = suite('an engine that is down at the start', { timeoutMs: 80_000 })

waiting('is reported by /readyz and in one log line, and waited for', async () => {
  const { child, storePort, at, ended, printed } = await startWaiting()
  const refusal = await until(async () => {
    const reply = await at('/readyz')
    const { error } = (await reply.json()) as { error: { code: string; message: string } }
    return reply.status === 503 && /SVC_EVENT_STORE: esdb:\/\/127/.test(error.message)
      ? { reply, error }
      : undefined
  })
  assert.is(refusal.error.code, 'unavailable')
  assert.ok(refusal.reply.headers.get('retry-after'))
  const api = await at('/v1/projects')
  assert.is(api.status, 503)
  const standIn = await startStandIn({ port: storePort })
  await until(async () => (await at('/readyz')).status === 200, { timeoutMs: 20_000 })
  assert.is((await at('/v1/projects')).status, 401)
  assert.not.match(printed(), 'planted')
  assert.is(printed().match(/warn SVC_EVENT_STORE/g)?.length, 1, printed())
  child.kill('SIGTERM')
  assert.equal(await ended, [0, null])
  await standIn.stop()
})

waiting('is waited for at every step of the start', async () => {
  const { child, storePort, at, ended, printed } = await startWaiting()
  const standIn = await startStandIn({ port: storePort })
  standIn.misbehave.appends(
    { reply: 'not ready' },
    { times: Infinity, stream: (name) => name.startsWith('worker-') },
  )
  await until(() => /The event store .*; retrying until it answers/.test(printed()), { timeoutMs: 30_000 })
  assert.is((await at('/readyz')).status, 503)
  standIn.misbehave.heal()
  await until(async () => (await at('/readyz')).status === 200, { timeoutMs: 20_000 })
  child.kill('SIGTERM')
  assert.equal(await ended, [0, null])
  await standIn.stop()
})

waiting('does not keep the process from being stopped', async () => {
  const { child, ended } = await startWaiting()
  child.kill('SIGTERM')
  assert.equal(await ended, [0, null])
})

waiting.run()
