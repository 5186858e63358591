import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { makeBackup } from '../../src/backup/makeBackup.ts'
import { framesIn } from '../../src/backup/rowFrames.ts'
import { Backups } from '../../src/commands/backups/backups.ts'
import { readRows } from '../../src/commands/backups/readRows.ts'
import { openAggregates } from '../../src/domain/aggregates.ts'
import { streamOf } from '../../src/events/streams.ts'
import { newId } from '../../src/ids.ts'
import { openLogger } from '../../src/logger.ts'
import { readConfig } from '../../src/process/config.ts'
import { openBlobs } from '../../src/process/engines.ts'
import { lockBackup } from '../../src/process/lockBackup.ts'
import { newServiceKey, newSession } from '../api/issuing.ts'
import { type Embedded, spawnEmbedded } from '../support/backedUp.ts'
import { call, handled, publish, type Run } from '../support/build.ts'
import { cli, cliJson, startCli } from '../support/cli.ts'
import { openEngineProxies } from '../support/engineProxies.ts'
import { engineUrl, namedUrl, reportExercised } from '../support/engines.ts'
import { startStandIn } from '../support/eventstoredb/index.ts'
import { SECRET_LENGTH } from '../support/furnish.ts'
import { getAnswers } from '../support/getAnswers.ts'
import { openApi } from '../support/http.ts'
import { installation, realEngines } from '../support/installation.ts'
import { notHere } from '../support/notHere.ts'
import { openLog } from '../support/openLog.ts'
import { spawnFurnished } from '../support/spawnFurnished.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

/** Positions of the log differ, and so does the address of content. */
const OF_THE_LOG = ['/v1/audit', '/operator/audit', '/v1/env/subscribe', '/operator/secrets']

interface Stored {
  readonly master_key: string
  readonly api_key: string
  readonly operator_token: string
}

/** The variables of a node that continues an embedded installation on external engines of its own. */
const continuing = (dataDir: string, events?: string): Record<string, string> => {
  const stored = JSON.parse(readFileSync(join(dataDir, 'secrets.json'), 'utf8')) as Stored
  return {
    ...realEngines(tempDir(), namedUrl),
    ...(events !== undefined && { SVC_EVENT_STORE: `${events}&prefix=${newId()}.` }),
    SVC_MASTER_KEY: stored.master_key,
    SVC_API_KEY: stored.api_key,
    SVC_OPERATOR_TOKEN: stored.operator_token,
  }
}

const answersOf = async (server: Embedded): Promise<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(
      await getAnswers(server.api, server.operator, {
        upload_id: '',
        without: [...OF_THE_LOG, '/v1/files/uploads/'],
      }),
    ).map(([path, answer]) => [path, answer.replaceAll(/\\"storage_backend\\":\\"\w+\\"/g, '')]),
  )

/** The audit without positions and places of content, which differ. */
const changesIn = async ({ cliEnv }: Embedded): Promise<readonly string[]> =>
  (await cli(['audit', '--json'], { env: cliEnv })).out
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.stringify({ ...(JSON.parse(line) as object), position: '' }))
    .map((line) => line.replaceAll(/"storage_backend":"\w+"/g, ''))
    .sort()

/** Backs up a stopped service after `change`, so that no worker sees what was added. */
const backedUpAfter = async (
  dataDir: string,
  dir: string,
  change: (store: Awaited<ReturnType<typeof openLog>>['store']) => Promise<void>,
): Promise<void> => {
  const config = readConfig(
    installation(dataDir, { SVC_EVENT_STORE: '', SVC_BLOBS: '', SVC_READ_MODELS: '', SVC_MASTER_KEY: '' }),
  )
  const { store } = await openLog(config)
  await change(store)
  const blobs = await openBlobs(config)
  const backups = new Backups({
    store,
    blobs,
    aggregates: openAggregates(store),
    logger: openLogger(() => {}),
  })
  const of = (id: string) => backups.use(id, new AbortController().signal)
  const unlock = lockBackup(dir)
  await makeBackup({
    dir,
    source: {
      begin: () => backups.begin(),
      rows: (id, after) => framesIn(readRows(of(id).log, after)),
      blobs: (id) => of(id).blobs.list(),
      async *blob(id, key, from) {
        yield* (await of(id).blobs.get(key, { from })) as AsyncIterable<Uint8Array>
      },
      complete: (id) => backups.complete(id),
      end: (id) => backups.end(id),
    },
    onProgress: () => {},
  })
  unlock()
  await store.close()
  await blobs.close()
}

interface Context {
  readonly server: Embedded
  readonly dir: string
  readonly events: string
  readonly stop: () => Promise<unknown>
}

const title = 'svc restore into external engines'
if (engineUrl('mongodb') === null || engineUrl('s3') === null) {
  notHere(title, 'they need SVC_TEST_MONGODB and SVC_TEST_S3')
} else {
  const moved = suite<Context>(title, { timeoutMs: 240_000 })
  moved.before(async (context) => {
    const standIn = engineUrl('eventStore') === null ? await startStandIn() : null
    if (standIn) reportExercised('EventStoreDB stand-in')
    const { server } = await spawnFurnished()
    Object.assign(context, {
      server,
      dir: join(tempDir(), 'backup'),
      events: standIn?.url ?? namedUrl('eventStore'),
      stop: () => Promise.all([server.stop(), standIn?.stop()]),
    })
  })
  moved.after(({ stop }) => stop())

  moved(
    'makes a cluster that answers as the original did, to the same credentials',
    async ({ server, dir, events }) => {
      const { api } = server
      const session = await newSession(api, { 'run:*': ['read'] })
      const serviceKey = await newServiceKey(api, { 'run:*': ['read'] })
      const before = await answersOf(server)
      await cliJson(['backup', dir], { env: server.cliEnv })
      const env = continuing(server.dataDir, events)
      const restored = await cliJson<{ events: number; position: number }>(['restore', dir], { env })
      assert.ok(restored.events < restored.position, 'some events have expired')
      const cluster = await spawnEmbedded(tempDir(), env)
      try {
        const now = await answersOf(cluster)
        assert.equal(Object.keys(now).sort(), Object.keys(before).sort())
        for (const [path, answer] of Object.entries(before)) assert.is(now[path], answer, path)
        const changes = await changesIn(server)
        assert.equal(
          (await changesIn(cluster)).filter((change) => !changes.includes(change)),
          [],
        )
        assert.is((await changesIn(cluster)).length, changes.length)
        for (const { token } of [session, serviceKey])
          assert.is((await openApi(cluster.url, token).send('GET', '/runs')).status, 200)
        assert.is(cluster.api.key, api.key)
        assert.is((await call(cluster.api, 'f/readKey')).result, SECRET_LENGTH)
        const [webhook] = (await api.page<{ url: string }>('/projects/shop/webhooks')).data
        const path = new URL(webhook?.url ?? '').pathname
        const { status, text } = await cluster.api.send('POST', `${cluster.url}${path}`, {
          body: { paid: true },
        })
        assert.is(status, 200, text)
        const { code, err } = await cli(['restore', dir], { env })
        assert.is(code, 1)
        assert.match(err, /^svc: SVC_EVENT_STORE: it contains an installation; [^\n]+\n$/)
      } finally {
        await cluster.stop()
      }
    },
  )

  moved('handles what no worker had handled, and nothing twice', async ({ server, events }) => {
    const dir = join(tempDir(), 'backup')
    const { dataDir } = await copyOf(server)
    const event_id = newId()
    const stream_id = newId()
    const { env_id } = await server.api.get<{ env_id: string }>('/env')
    await backedUpAfter(dataDir, dir, async (store) => {
      const metadata = {
        env_id,
        correlation_id: event_id,
        actor: 'test',
        actor_type: 'system',
        v: 1,
      } as const
      const published = {
        event_id,
        stream_id,
        event_type: 'asked',
        event_data: 'open',
        source: 'api',
        event_time: new Date().toISOString(),
      }
      await store.append(
        streamOf.stream(stream_id),
        [
          { id: newId(), event: { type: 'StreamCreated', stream_id }, metadata },
          { id: newId(), event: { type: 'EventPublished', ...published }, metadata },
        ],
        'none',
      )
    })
    const env = continuing(dataDir, events)
    await cliJson(['restore', dir], { env })
    const cluster = await spawnEmbedded(tempDir(), env)
    try {
      const [run] = await handled(cluster.api, event_id)
      assert.equal([run?.status, run?.result], ['succeeded', 'open'])
      const { event_id: next } = await publish(cluster.api, 'asked', 'new') // later than all that were restored
      await handled(cluster.api, next)
      const before = (await server.api.page<Run>('/runs')).pagination.total
      assert.is((await cluster.api.page<Run>('/runs')).pagination.total, before + 2)
    } finally {
      await cluster.stop()
    }
  })

  moved(
    'that was killed keeps every node from starting, and is continued',
    async ({ server, dir, events }) => {
      const env = continuing(server.dataDir, events)
      const { proxies, env: slow } = await openEngineProxies({ SVC_BLOBS: env['SVC_BLOBS'] ?? '' })
      proxies.SVC_BLOBS?.delay(500) // else the restore may end before it is seen
      const killed = startCli(['restore', dir], { env: { ...env, ...slow } })
      const blobs = await openBlobs(readConfig({ ...env, SVC_DATA_DIR: tempDir() }))
      await until(async () => (await blobs.head('restoring')) !== null)
      killed.process.kill('SIGKILL')
      assert.is(await killed.ended, 'SIGKILL')
      await proxies.SVC_BLOBS?.close()
      const refused = await spawnEmbedded(tempDir(), env).then(
        () => '',
        (error: unknown) => String(error),
      )
      assert.match(refused, 'a restore that did not complete: repeat svc restore')
      await cliJson(['restore', dir], { env })
      assert.is(await blobs.head('restoring'), null)
      await blobs.close()
      const cluster = await spawnEmbedded(tempDir(), env)
      try {
        assert.is((await call(cluster.api, 'f/readKey')).result, SECRET_LENGTH)
      } finally {
        await cluster.stop()
      }
    },
  )

  moved(
    'refuses another master key, used engines and half of them, with one line',
    async ({ server, dir, events }) => {
      const env = continuing(server.dataDir, events)
      const used = await openBlobs(readConfig({ ...env, SVC_DATA_DIR: tempDir() }))
      for (const [args, more, expected] of [
        [
          [],
          { SVC_MASTER_KEY: Buffer.alloc(32, 1).toString('base64') },
          'the backup was made with the master key',
        ],
        [[], { SVC_MASTER_KEY: '' }, 'SVC_MASTER_KEY: required'],
        [
          [],
          { SVC_BLOBS: '' },
          'SVC_EVENT_STORE, SVC_BLOBS: expected two external engines or two embedded ones',
        ],
        [
          ['--secrets', join(server.dataDir, 'secrets.json')],
          {},
          '--secrets: external engines need SVC_MASTER_KEY',
        ],
      ] as const) {
        const { code, err } = await cli(['restore', dir, ...args], { env: { ...env, ...more } })
        assert.is(code, 1, err)
        assert.match(err, /^svc: (?:Configuration:\n)?[^\n]+\n$/)
        assert.match(err, expected)
      }
      await used.put('files/a', Buffer.from('of another service'))
      const { code, err } = await cli(['restore', dir], { env })
      assert.is(code, 1)
      assert.match(err, /^svc: SVC_BLOBS: it contains data \(files\/a\); [^\n]+\n$/)
      await used.remove('files/a')
      assert.equal(await Array.fromAsync(used.list('')), [])
      await used.close()
    },
  )

  moved.run()
}

/** Restores a service into a directory that no service uses. */
const copyOf = async (server: Embedded): Promise<{ readonly dataDir: string }> => {
  const [dir, dataDir] = [join(tempDir(), 'backup'), join(tempDir(), 'data')]
  await cliJson(['backup', dir], { env: server.cliEnv })
  const secrets = join(server.dataDir, 'secrets.json')
  await cliJson(['restore', dir, '--secrets', secrets], { env: { SVC_DATA_DIR: dataDir } })
  assert.ok(existsSync(join(dataDir, 'log.db')))
  return { dataDir }
}
