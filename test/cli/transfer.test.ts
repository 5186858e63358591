import { existsSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { answering } from '../support/answering.ts'
import { type Embedded, spawnEmbedded } from '../support/backedUp.ts'
import { call, handle, publish } from '../support/build.ts'
import { cli, cliJson, startCli } from '../support/cli.ts'
import { SECRET_LENGTH } from '../support/furnish.ts'
import type { Api } from '../support/http.ts'
import { startStandIn } from '../support/eventstoredb/index.ts'
import { realEngines } from '../support/installation.ts'
import { relaying } from '../support/relaying.ts'
import { spawnFurnished } from '../support/spawnFurnished.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { answersOf, newKey } from '../support/transferred.ts'
import { until } from '../support/until.ts'

interface Printed {
  readonly env_id: string
  readonly facts: number
  readonly blobs: number
  /** Of an export: the API keys that are not in it. */
  readonly api_keys: readonly string[]
}

/** A line of `svc audit --json`. */
interface Change {
  readonly time: string
  readonly first_time?: string
  readonly type: string
  readonly actor: object
  readonly data: unknown
}

/** What a reader of the stream receives from the beginning of what is left. */
const framesOf = async (api: Api, stream_id: string): Promise<string> =>
  (await api.send('GET', `/streams/${stream_id}/subscribe?from=start`)).text

const transfer = suite<{ server: Embedded; target: Embedded; dir: string; env_id: string; cut: string }>(
  'svc export and import',
  {
    timeoutMs: 180_000,
  },
)
transfer.before(async (context) => {
  const [{ server, cut }, target] = await Promise.all([spawnFurnished(), spawnEmbedded()])
  const { env_id } = await server.api.get<{ env_id: string }>('/env')
  Object.assign(context, { server, target, env_id, cut, dir: tempDir() })
})
transfer.after(async ({ server, target }) => {
  await server.stop()
  await target.stop()
})

transfer(
  'make an environment that answers as the original, also for secrets, and works',
  async ({ server, target, dir, env_id }) => {
    const file = join(dir, 'dev.svc')
    const exported = await cliJson<Printed>(['export', 'local/dev', file], { env: server.cliEnv })
    assert.is(exported.env_id, env_id)
    assert.ok(exported.api_keys.length > 0)
    assert.equal(
      [file, `${file}.key`].map((path) => statSync(path).mode & 0o077),
      [0, 0],
    )
    assert.not.match(readFileSync(file, 'latin1'), 'the secret value')
    const imported = await cliJson<Printed>(['import', file], { env: target.cliEnv })
    assert.equal([imported.env_id, imported.facts, imported.blobs], [env_id, exported.facts, exported.blobs])
    const api = await newKey(target, env_id)
    const [before, now] = [await answersOf(server, server.api), await answersOf(target, api)]
    assert.equal(Object.keys(now).sort(), Object.keys(before).sort())
    for (const [path, answer] of Object.entries(before)) assert.is(now[path], answer, path)
    assert.is((await call(api, 'f/readKey')).result, SECRET_LENGTH)
    assert.is((await handle(api, 'asked', 'again')).status, 'succeeded')
  },
)

transfer(
  'record who imported the environment and when, beside the times of the other installation',
  async ({ server, target, dir, env_id }) => {
    const changes = async (at: Embedded, ...filters: readonly string[]): Promise<readonly Change[]> =>
      (await cli(['audit', '--env', env_id, '--json', ...filters], { env: at.cliEnv })).out
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line) as Change)
    const found = await changes(target)
    const imported = found.find(({ type }) => type === 'EnvImported')
    assert.equal(imported?.actor, { credential_id: 'operator', credential_type: 'operator', ip: '127.0.0.1' })
    const { facts = 0, blobs = 0 } = (imported?.data ?? {}) as Partial<Printed>
    assert.ok(facts > 0 && blobs > 0)
    const moved = found.filter(({ first_time }) => first_time !== undefined)
    const typesAt = async (at: Embedded) =>
      (await changes(at)).map(({ type, data }) => JSON.stringify([type, data]))
    const originals = new Set(await typesAt(server))
    for (const { type, data } of moved) assert.ok(originals.has(JSON.stringify([type, data])), type)
    assert.ok(moved.some(({ type }) => type === 'ProjectCreated'))
    const times = found.map(({ time }) => time)
    assert.equal(times, times.toSorted())
    const [first] = moved
    assert.ok(first?.first_time !== undefined && first.first_time < first.time)
    const since = statSync(join(dir, 'dev.svc')).mtime.toISOString()
    assert.equal(
      (await changes(target, '--from', since)).filter(({ first_time }) => first_time !== undefined),
      moved,
    )
    assert.equal(
      (await changes(target, '--to', since)).filter(({ first_time }) => first_time !== undefined),
      [],
    )
    const created = moved.find(({ type }) => type === 'ProjectCreated')
    const then = await newKey(target, env_id)
    const { data } = await then.page<{ name: string }>(`/projects?as_of=${created?.first_time}`)
    assert.equal(data.length, 1, 'the past state before the import')
  },
)

transfer(
  'survive the way through EventStoreDB and back, with other engines if they are named',
  async ({ server, dir, env_id, cut }) => {
    const standIn = process.env['SVC_TEST_EVENT_STORE'] ? null : await startStandIn()
    if (standIn) process.env['SVC_TEST_STAND_IN'] = standIn.url
    const dataDir = tempDir()
    const cluster = await spawnEmbedded(dataDir, realEngines(dataDir))
    const back = await spawnEmbedded()
    const file = join(dir, 'back.svc')
    try {
      const before = await answersOf(server, server.api)
      const frames = await framesOf(server.api, cut)
      const [first] = /(?<=^id: )\d+/m.exec(frames) ?? []
      assert.ok(Number(first) > 3, 'the beginning of the stream has expired')
      await cliJson(['import', join(dir, 'dev.svc')], { env: cluster.cliEnv })
      assert.is(await framesOf(await newKey(cluster, env_id), cut), frames)
      assert.equal(await answersOf(cluster, await newKey(cluster, env_id)), before)
      await cliJson(['export', 'local/dev', file], { env: cluster.cliEnv })
      await cliJson(['import', file], { env: back.cliEnv })
      assert.equal(await answersOf(back, await newKey(back, env_id)), before)
      assert.is(await framesOf(await newKey(back, env_id), cut), frames)
    } finally {
      await Promise.all([cluster.stop(), back.stop()])
      await standIn?.stop()
    }
  },
)

transfer('repeat an import without any change', async ({ target, dir, env_id }) => {
  const api = await newKey(target, env_id)
  const before = await answersOf(target, api)
  await cliJson(['import', join(dir, 'dev.svc')], { env: target.cliEnv })
  assert.equal(await answersOf(target, api), before)
})

transfer('refuse an environment that exists with other content, and change nothing', async ({ dir }) => {
  const other = await spawnEmbedded()
  try {
    await publish(other.api, 'mine')
    const before = await answersOf(other, other.api).catch(() => null)
    const { code, err } = await cli(['import', join(dir, 'dev.svc')], { env: other.cliEnv })
    assert.is(code, 1)
    assert.match(err, /^svc: The environment exists already and is not empty\n$/)
    assert.equal(await answersOf(other, other.api).catch(() => null), before)
  } finally {
    await other.stop()
  }
})

transfer('continue an import that was killed', async ({ server, dir }) => {
  const other = await spawnEmbedded()
  try {
    const file = join(dir, 'dev.svc')
    const envs = `${other.url}/operator/orgs/local/envs`
    const isImporting = async () =>
      (await other.operator.page<{ importing?: true }>(envs)).data.some(({ importing }) => importing)
    const after = statSync(file).size - 10_000 // within the facts, which are the last part
    await answering(relaying(other.url, [], { after }), async (SVC_URL) => {
      const killed = startCli(['import', file], { env: { ...other.cliEnv, SVC_URL } })
      await until(isImporting, { timeoutMs: 30_000 })
      killed.process.kill('SIGKILL')
      assert.is(await killed.ended, 'SIGKILL')
    })
    await cliJson(['import', file], { env: other.cliEnv })
    const [before, now] = [await answersOf(server, server.api), await answersOf(other, other.api)]
    for (const [path, answer] of Object.entries(before)) assert.is(now[path], answer, path)
  } finally {
    await other.stop()
  }
})

transfer(
  'refuse a file that is cut or changed, another file, and another key, with one line',
  async ({ dir }) => {
    const other = await spawnEmbedded()
    const copy = join(dir, 'copy.svc')
    const whole = readFileSync(join(dir, 'dev.svc'))
    const key = readFileSync(join(dir, 'dev.svc.key'))
    const refused = async (expected: RegExp | string) => {
      const { code, err } = await cli(['import', copy], { env: other.cliEnv })
      assert.is(code, 1)
      assert.match(err, /^svc: [^\n]+\n$/)
      assert.match(err, expected)
    }
    try {
      writeFileSync(copy, whole)
      writeFileSync(`${copy}.key`, `${Buffer.alloc(32, 1).toString('base64')}\n`)
      await refused('do not open')
      writeFileSync(`${copy}.key`, key)
      truncateSync(copy, Math.floor(whole.length / 2))
      await refused(/ends in the middle|is incomplete/)
      const at = Math.floor(whole.length / 2)
      writeFileSync(copy, whole.with(at, (whole[at] ?? 0) ^ 1))
      await refused(/is damaged after byte \d+: copy it again, or export the environment again/)
      writeFileSync(copy, 'PK\u0003\u0004 a zip\n')
      await refused('svc export')
      writeFileSync(copy, `${JSON.stringify({ format: 'svc export', version: 4 })}\n`)
      await refused('upgrade svc')
      const { data } = await other.api.page('/projects')
      void data
    } finally {
      await other.stop()
    }
  },
)

transfer(
  'refuse an unknown environment, a file that exists, a file that cannot be read, and a wrong key',
  async ({ server, dir }) => {
    for (const [args, expected] of [
      [['export', 'local/nope', join(dir, 'x')], 'No environment "local/nope"'],
      [
        ['export', 'local', join(dir, 'x')],
        'Expected ORGANIZATION/NAME or the id of an environment, got "local"',
      ],
      [['export', 'local/dev', join(dir, 'dev.svc')], 'exists; name a new file'],
      [['import', dir, '--key-file', join(dir, 'dev.svc.key')], `FILE: ${dir}: cannot be read (EISDIR)`],
      [
        ['import', join(dir, 'dev.svc'), '--key-file', join(dir, 'dev.svc')],
        /^svc: --key-file: .* contains no transfer key \(32 bytes as base64\)\n$/,
      ],
      [
        ['export', 'local/dev', join(dir, 'x'), '--key-file', join(dir, 'dev.svc')],
        /^svc: --key-file: .* contains no transfer key/,
      ],
      [
        ['export', 'local/dev', join(dir, 'x'), '--key-file', join(dir, 'x')],
        '--key-file: expected another file than FILE',
      ],
    ] as const) {
      const { code, err } = await cli(args, { env: server.cliEnv })
      assert.is(code, 1)
      assert.match(err, expected)
    }
    assert.not.ok(existsSync(join(dir, 'x')))
  },
)
transfer.run()
