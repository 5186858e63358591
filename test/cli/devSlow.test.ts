import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { type Changes, watchFolder } from '../../src/cli/dev/changes.ts'
import { openProject } from '../../src/cli/dev/project.ts'
import { createClient } from '../../src/client/index.ts'
import { call } from '../support/build.ts'
import { type DevLine, folderOf, save } from '../support/dev.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

const test = suite('an upload of svc dev', { timeoutMs: 60_000 })

type Fetch = typeof globalThis.fetch

/** Develops a folder at a service whose first upload is answered so. */
const developWith = async (
  folder: string,
  answer: (changes: Changes, ...given: Parameters<Fetch>) => Promise<Response>,
) => {
  const server = await startServer()
  const stopped = new AbortController()
  const { signal } = stopped
  const changes = watchFolder(folder, signal)
  const lines: DevLine[] = []
  let uploads = 0
  const client = createClient({
    url: server.url,
    token: server.api.key,
    retries: 0,
    fetch: (target, init) => {
      const isUpload = init?.method === 'POST' && String(target).endsWith('/builds')
      return isUpload && ++uploads === 1 ? answer(changes, target, init) : fetch(target, init)
    },
  })
  const project = openProject({
    folder,
    client,
    changes,
    signal,
    print: (line) => Promise.resolve(void lines.push(line.json as DevLine)),
    announce: () => Promise.resolve(),
    data: null,
  })
  const following = project.follow().catch((error: unknown) => {
    if (!signal.aborted) throw error
  })
  const stop = async () => {
    stopped.abort()
    await following
    await project.close()
    await server.stop()
  }
  return { server, changes, lines, stop }
}

test('that takes long is reported, and a newer save replaces it', async () => {
  const folder = folderOf({ 'package.json': '{"name":"slow"}', 'a.ts': 'export const a = () => 1\n' })
  const aborted: unknown[] = []
  const { server, changes, lines, stop } = await developWith(
    folder,
    (_, __, init) =>
      new Promise((___, reject) => {
        init?.signal?.addEventListener('abort', () => {
          aborted.push(init.signal?.reason)
          reject(init.signal?.reason as Error)
        })
      }),
  )
  await until(() => lines.some(({ type }) => type === 'slow'))
  save(folder, 'dev.log', 'a log in the folder changes too')
  await until(() => changes.pending().includes('dev.log'))
  assert.is(aborted.length, 0)
  save(folder, 'a.ts', 'export const a = () => 2\n')
  const live = await until(() => lines.find(({ type }) => type === 'live'), { timeoutMs: 30_000 })
  assert.equal(live['paths'], ['a.ts'])
  assert.is(aborted.length, 1)
  assert.is((await call(server.api, 'a/a')).result, 2)
  assert.equal(
    lines.map(({ type }) => type).filter((type) => type === 'failed'),
    [],
  )
  await stop()
})

test('that is refused for the moment is reported and repeated, although a tool has written a file meanwhile', async () => {
  const folder = folderOf({ 'package.json': '{"name":"slow"}', 'src/a.ts': 'export const a = () => 1\n' })
  const { lines, stop } = await developWith(folder, async (changes) => {
    save(folder, 'dist/a.js', 'written by a tool')
    await until(() => changes.pending().includes(join('dist', 'a.js')))
    return Response.json({ error: { code: 'unavailable', message: 'The disk is full' } }, { status: 503 })
  })
  await until(() => lines.some(({ type }) => type === 'live'), { timeoutMs: 30_000 })
  const [failed] = lines
  assert.is(failed?.type, 'failed')
  assert.match(JSON.stringify(failed?.['messages']), 'The disk is full')
  await stop()
})

test.run()
