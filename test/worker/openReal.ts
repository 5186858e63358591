import { openRuntime } from '../../src/builds/openRuntime.ts'
import { type Logger, silent } from '../../src/logger.ts'
import { buildBlobs } from '../sandbox/harness.ts'
import { cause, openNode } from '../support/openNode.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'
import type { ZippedBuild } from '../support/zipBuild.ts'
import { deployBuild, openWorker } from './openWorker.ts'

/** A worker with a real runtime. `held` are the blobs of its builds, which count what they are asked for. */
export const openReal = async () => {
  const node = await openNode()
  const blobs = buildBlobs()
  const held = { asked: 0, add: blobs.add }
  const get: typeof blobs.get = (...args) => {
    held.asked++
    return blobs.get(...args)
  }
  const warnings: string[] = []
  const logger: Logger = {
    ...silent,
    warn: (_, { error = '' } = {}) => void warnings.push(String(error)),
  }
  const { worker, runtime } = openWorker({ ...node, logger })
  const real = openRuntime({ blobs: { ...blobs, get }, cacheDir: tempDir() })
  runtime.invoke = (invocation) => real.invoke(invocation)
  runtime.close = () => real.close()
  await worker.start()
  const deploy = (zip: ZippedBuild) => deployBuild(node, cause.env_id, [], zip.hash)
  const lastOf = async (stream_id: string) => (await node.typesIn(stream_id)).at(-1)
  const isOver = (stream_id: string) => until(async () => (await lastOf(stream_id)) === 'RunSucceeded')
  const close = async () => {
    await worker.stop()
    await node.close()
  }
  return { node, worker, held, warnings, deploy, lastOf, isOver, close }
}
