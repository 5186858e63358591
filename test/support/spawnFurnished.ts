import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { streamOf } from '../../src/events/streams.ts'
import { newId } from '../../src/ids.ts'
import { readConfig } from '../../src/process/config.ts'
import { type Embedded, spawnEmbedded } from './backedUp.ts'
import { handled, publish } from './build.ts'
import { furnish } from './furnish.ts'
import { EMBEDDED, installation } from './installation.ts'
import { openLog } from './openLog.ts'
import { until } from './until.ts'

/** The facts of the stream that are left. */
const LEFT = 2

/**
 * Removes the facts of a stream from the embedded log of a stopped service, as its retention does, and stores the last ones again. The
 * next start builds the read models from what is left.
 */
const expireBeginning = async (dataDir: string, stream_id: string): Promise<void> => {
  const { store } = await openLog(readConfig(installation(dataDir, { ...EMBEDDED, SVC_MASTER_KEY: '' })))
  const stream = streamOf.stream(stream_id)
  const facts = await Array.fromAsync(store.read(stream))
  await store.expire(stream, 0)
  await until(() => store.isExpired(stream))
  await store.scavenge?.()
  await store.expire(stream, null)
  const left = facts.slice(-LEFT).map(({ event, metadata }) => ({ id: newId(), event, metadata }))
  await store.append(stream, left, facts.length - 1)
  await store.close()
  for (const name of ['read-models.db', 'read-models.db-wal', 'read-models.db-shm', 'read-models'])
    rmSync(join(dataDir, name), { recursive: true, force: true })
}

/** Starts a service with everything that an environment may contain, and a stream whose beginning has expired. */
export const spawnFurnished = async (): Promise<{ server: Embedded; cut: string }> => {
  const first = await spawnEmbedded()
  await furnish(first.api)
  const { stream_id, event_id } = await publish(first.api, 'asked', 'long ago')
  await handled(first.api, event_id)
  await first.stop()
  await expireBeginning(first.dataDir, stream_id)
  const server = await spawnEmbedded(first.dataDir)
  const { event_id: later } = await publish(server.api, 'asked', 'lately', { stream_id })
  await handled(server.api, later)
  return { server, cut: stream_id }
}
