import { closeSync, cpSync, openSync, readdirSync, rmSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import * as assert from 'uvu/assert'
import { isAppError } from '../../src/errors.ts'
import { type Event, publish } from '../support/build.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { until } from '../support/until.ts'

export const EMBEDDED = {
  SVC_EVENT_STORE: 'embedded:',
  SVC_READ_MODELS: 'embedded:',
  SVC_BLOBS: 'embedded:',
  SVC_REDIS: '',
  SVC_MASTER_KEY: Buffer.alloc(32, 5).toString('base64'),
}
export const COUNT = 40

export const publishMany = async ({ api }: TestServer, count = COUNT): Promise<readonly string[]> => {
  const ids: string[] = []
  for (let i = 0; i < count; i++) ids.push((await publish(api, 'order:created', { i })).event_id)
  await until(async () => (await totalOf({ api })) >= count)
  return ids
}

export const totalOf = async ({ api }: Pick<TestServer, 'api'>): Promise<number> =>
  (await api.page<Event>('/events?limit=1')).pagination.total

export const startIn = (dataDir: string, env: Readonly<Record<string, string>> = {}): Promise<TestServer> =>
  startServer({ dataDir, env: { ...EMBEDDED, ...env } })

/** The reason with which a start is refused, and the value that accepts the loss. */
export const refusedIn = async (dataDir: string, env: Readonly<Record<string, string>> = {}) => {
  const failure = await startIn(dataDir, env).then(
    async (server) => {
      await server.stop()
      return new Error('Expected a refusal, got a start')
    },
    (error: unknown) => error,
  )
  if (!isAppError(failure, 'bad_request')) throw new Error('Expected a refusal', { cause: failure })
  const line = failure.message
  assert.not.match(line, '\n')
  return { line, acceptance: /SVC_ACCEPT_LOSS=([0-9a-f]{12})/.exec(line)?.[1] ?? 'none' }
}

export const filesOf = (dir: string, database: string): string[] =>
  readdirSync(dir).filter((name) => name.startsWith(database))
export const remove = (dir: string, database: string): void =>
  filesOf(dir, database).forEach((name) => rmSync(join(dir, name)))
export const put = (from: string, to: string, database: string): void => {
  remove(to, database)
  for (const name of filesOf(from, database)) cpSync(join(from, name), join(to, name))
}

/**
 * Overwrites all pages of a database in use, except the first, and makes its users read them again. Returns false while one
 * of its users keeps the WAL from being moved.
 */
export const damagePages = (file: string): boolean => {
  const db = new DatabaseSync(file)
  try {
    const { busy } = db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get() ?? {}
    if (busy !== 0) return false
    const { page_size: begin } = db.prepare('PRAGMA page_size').get() ?? {}
    const length = statSync(file).size - Number(begin)
    const descriptor = openSync(file, 'r+')
    writeSync(descriptor, new Uint8Array(length).fill(0xff), 0, length, Number(begin))
    closeSync(descriptor)
    // Users drop what they have in memory when another connection has committed.
    const { user_version } = db.prepare('PRAGMA user_version').get() ?? {}
    db.exec(`PRAGMA user_version=${String(user_version)}`)
    return true
  } finally {
    db.close()
  }
}

/** New events, and all that the log still has, can be read. */
export const checkContinues = async (
  server: TestServer,
  kept: readonly string[],
  lost: readonly string[],
) => {
  const { event_id } = await publish(server.api, 'order:created', 'after the loss')
  for (const id of [event_id, ...kept]) assert.is((await server.api.get<Event>(`/events/${id}`)).event_id, id)
  for (const id of lost) assert.is((await server.api.send('GET', `/events/${id}`)).status, 404)
  assert.is(await totalOf(server), kept.length + 1)
}
