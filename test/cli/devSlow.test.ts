import * as assert from 'uvu/assert'
import { watchFolder } from '../../src/cli/dev/changes.ts'
import { openProject } from '../../src/cli/dev/project.ts'
import { createClient } from '../../src/client/index.ts'
import { call } from '../support/build.ts'
import { type DevLine, folderOf, save } from '../support/dev.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

const test = suite('a slow upload of svc dev', { timeoutMs: 60_000 })

/** Develops a folder at a service whose first upload never ends by itself. */
const developSlowly = async (folder: string) => {
  const server = await startServer()
  const stopped = new AbortController()
  const { signal } = stopped
  const [lines, aborted]: [DevLine[], unknown[]] = [[], []]
  const client = createClient({
    url: server.url,
    token: server.api.key,
    fetch: (target, init) => {
      const isUpload = init?.method === 'POST' && String(target).endsWith('/builds')
      if (!isUpload || aborted.length > 0) return fetch(target, init)
      return new Promise((_, reject) => {
        init.signal?.addEventListener('abort', () => {
          aborted.push(init.signal?.reason)
          reject(init.signal?.reason as Error)
        })
      })
    },
  })
  const changes = watchFolder(folder, signal)
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
  return { server, changes, lines, aborted, stop }
}

test('is reported, and a newer save replaces it', async () => {
  const folder = folderOf({ 'package.json': '{"name":"slow"}', 'a.ts': 'export const a = () => 1\n' })
  const { server, changes, lines, aborted, stop } = await developSlowly(folder)
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

test.run()
