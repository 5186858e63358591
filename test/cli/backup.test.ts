import { existsSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { type Embedded, filesIn, type Printed, put, spawnEmbedded } from '../support/backedUp.ts'
import { call, deploy } from '../support/build.ts'
import { answering } from '../support/answering.ts'
import { cli, cliJson, startCli } from '../support/cli.ts'
import { relaying } from '../support/relaying.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'
import { withRestored } from '../support/withRestored.ts'

/** The files of the blobs in a backup, by key. */
const blobsIn = (dir: string): ReadonlyMap<string, string> => {
  const { blobs } = JSON.parse(readFileSync(join(dir, 'backup.json'), 'utf8')) as {
    blobs: { sha256: string }
  }
  const fileOf = (sha256: string) => join(dir, 'content', sha256.slice(0, 2), sha256)
  const lines = readFileSync(fileOf(blobs.sha256), 'utf8').split('\n').slice(0, -1)
  return new Map(
    lines.map((line) => {
      const [key = '', , sha256 = ''] = JSON.parse(line) as string[]
      return [key, fileOf(sha256)]
    }),
  )
}

/** Starts a backup, and calls back in the moment in which it requests its nth blob. Resolves when it has ended. */
const backUpUntil = async (
  nth: number,
  { dir, server }: { readonly dir: string; readonly server: Embedded },
  reached: (running: ReturnType<typeof startCli>) => void,
): Promise<ReturnType<typeof startCli>> => {
  const asked: string[] = []
  const relay = relaying(server.url, asked)
  let running: ReturnType<typeof startCli> | undefined
  await answering(
    (request, response) => {
      relay(request, response)
      const isBlob = /^GET .*\/blobs\/./
      if (
        running &&
        isBlob.test(asked.at(-1) ?? '') &&
        asked.filter((one) => isBlob.test(one)).length === nth
      )
        reached(running)
    },
    async (SVC_URL) => {
      running = startCli(['backup', dir], { env: { ...server.cliEnv, SVC_URL } })
      await running.ended
    },
  )
  assert.ok(running)
  return running
}

const backup = suite<{ server: Embedded }>('svc backup', { timeoutMs: 120_000 })
backup.before(async (context) => {
  context.server = await spawnEmbedded()
  await deploy(context.server.api, 'shop', {
    'f.js': `import { context } from 'svc'\nexport const readKey = () => context('KEY')`,
  })
})
backup.after(({ server }) => server.stop())

backup('of the same service adds what is new, and keeps the segments of before', async ({ server }) => {
  const dir = join(tempDir(), 'backup')
  await put(server, 'first.txt', 'f'.repeat(100_000))
  const first = await cliJson<Printed>(['backup', dir], { env: server.cliEnv })
  const before = new Map(filesIn(dir).map((file) => [file, statSync(join(dir, file)).ino]))
  await put(server, 'second.txt', 's'.repeat(100_000))
  const second = await cliJson<Printed>(['backup', dir], { env: server.cliEnv })
  assert.ok(second.position > first.position)
  assert.is(second.blobs, first.blobs + 1)
  const kept = filesIn(dir).filter((file) => before.get(file) === statSync(join(dir, file)).ino)
  assert.ok(kept.filter((file) => file.startsWith('content/')).length >= first.blobs - 3) // all but keys and lists
  assert.is((await cli(['backup', 'verify', dir])).code, 0)
})

backup('removes a data key that was erased since, and the content of deleted files', async ({ server }) => {
  const { api, operator } = server
  const dir = join(tempDir(), 'backup')
  await api.post('/projects/shop/context', { key: 'KEY', value: 'v', description: '' })
  await put(server, 'deleted.txt', 'to be deleted')
  await cliJson(['backup', dir], { env: server.cliEnv })
  const keys = [...blobsIn(dir)].filter(
    ([key]) => key.startsWith('keys/') && !key.startsWith('keys/installation/'),
  )
  assert.ok(keys.length > 0)
  for (const [, file] of keys) assert.ok(existsSync(file))
  const { data } = await api.page<{ file_id: string; path: string }>('/files?limit=100')
  await api.remove(`/files/${data.find(({ path }) => path === 'deleted.txt')?.file_id}`)
  const { env_id } = await api.get<{ env_id: string }>('/env')
  await operator.remove(`${server.url}/operator/envs/${env_id}/data-keys`)
  const contents = () =>
    filesIn(dir)
      .map((file) => readFileSync(join(dir, file), 'utf8'))
      .join('\n')
  assert.match(contents(), 'to be deleted')
  await until(async () => {
    await cliJson(['backup', dir], { env: server.cliEnv })
    return !contents().includes('to be deleted') // the content is removed after the reply
  })
  for (const [key, file] of keys) {
    assert.not.ok(blobsIn(dir).has(key))
    assert.not.ok(existsSync(file))
    assert.not.match(contents(), key)
  }
  await withRestored(dir, server, async ({ api: restored }) => {
    assert.is((await call(restored, 'f/readKey')).status, 'failed')
  })
  await api.remove('/projects/shop/context/KEY')
})

backup('that was killed leaves the earlier one usable, and the next one continues it', async ({ server }) => {
  const dir = join(tempDir(), 'backup')
  const first = await cliJson<Printed>(['backup', dir], { env: server.cliEnv })
  for (let i = 0; i < 60; i++) await put(server, `many/${i}`, String(i).repeat(50_000))
  const journal = join(dir, 'progress.ndjson')
  const killed = await backUpUntil(20, { dir, server }, ({ process }) => process.kill('SIGKILL'))
  assert.is(await killed.ended, 'SIGKILL')
  assert.ok(existsSync(journal))
  const verified = await cliJson<Printed & { problems: string[] }>(['backup', 'verify', dir])
  assert.equal([verified.position, verified.problems], [first.position, []])
  const copied = new Map(
    filesIn(dir)
      .filter((file) => file.startsWith('content/'))
      .map((file) => [file, statSync(join(dir, file)).ino]),
  )
  const second = await cliJson<Printed>(['backup', dir], { env: server.cliEnv })
  assert.ok(second.position > first.position)
  const kept = filesIn(dir).filter((file) => copied.get(file) === statSync(join(dir, file)).ino)
  assert.ok(kept.length > 10, `${kept.length} of ${copied.size} files were kept`)
  assert.is((await cli(['backup', 'verify', dir])).code, 0)
  assert.not.ok(existsSync(journal))
})

backup('of a service that dies says how to continue, and is continued after its restart', async () => {
  const server = await spawnEmbedded()
  const dir = join(tempDir(), 'backup')
  for (let i = 0; i < 100; i++) await put(server, `many/${i}`, String(i).repeat(50_000))
  const running = await backUpUntil(20, { dir, server }, () => void server.end('SIGKILL'))
  assert.is(await running.ended, 1)
  assert.match(running.err(), /^svc: [^\n]+\n$/)
  const restarted = await spawnEmbedded(server.dataDir)
  try {
    await cliJson(['backup', dir], { env: restarted.cliEnv })
    assert.is((await cli(['backup', 'verify', dir])).code, 0)
  } finally {
    await restarted.stop()
  }
})

backup('continues after several failed attempts to connect again', async ({ server }) => {
  const dir = join(tempDir(), 'backup')
  const relay = relaying(server.url, [])
  let failures = 0
  await answering(
    (request, response) => {
      const isBlob = /^\/operator\/backups\/[^/]+\/blobs\/./.test(request.url ?? '')
      if (!isBlob || failures === 3) return relay(request, response)
      failures++
      request.socket.destroy()
    },
    async (SVC_URL) => void (await cliJson(['backup', dir], { env: { ...server.cliEnv, SVC_URL } })),
  )
  assert.is(failures, 3)
  assert.is((await cli(['backup', 'verify', dir])).code, 0)
})

backup('that was killed before the first one was complete is continued too', async ({ server }) => {
  const dir = join(tempDir(), 'backup')
  const killed = await backUpUntil(1, { dir, server }, ({ process }) => process.kill('SIGKILL'))
  assert.is(await killed.ended, 'SIGKILL')
  assert.ok(existsSync(join(dir, 'progress.ndjson')))
  assert.match(
    (await cli(['backup', 'verify', dir])).err,
    'the first backup into this directory did not complete',
  )
  await cliJson(['backup', dir], { env: server.cliEnv })
  assert.is((await cli(['backup', 'verify', dir])).code, 0)
})

backup('copies again what is missing in the directory', async ({ server }) => {
  const dir = join(tempDir(), 'backup')
  await cliJson(['backup', dir], { env: server.cliEnv })
  for (const file of filesIn(dir)) if (file !== 'backup.json') rmSync(join(dir, file))
  await cliJson(['backup', dir], { env: server.cliEnv })
  assert.is((await cli(['backup', 'verify', dir])).code, 0)
})

backup.run()
