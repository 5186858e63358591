import * as assert from 'uvu/assert'
import { openRuntime } from '../../src/builds/openRuntime.ts'
import { type Logger, silent } from '../../src/logger.ts'
import { buildBlobs } from '../sandbox/harness.ts'
import { cause, openNode } from '../support/openNode.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'
import { zipBuild, type ZippedBuild } from '../support/zipBuild.ts'
import { deployBuild, openWorker, wantedCall } from './openWorker.ts'

const zip = await zipBuild({ 'a.js': 'export const b = () => 1' })
const other = await zipBuild({ 'a.js': 'export const b = () => 2' })

/** A worker with a real runtime. `held` are its blobs, which count what they are asked for. */
const openReal = async () => {
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
  /** Resolves when the blobs were asked for this many more. */
  const asked = async (more: number) => {
    const enough = held.asked + more
    await until(() => held.asked >= enough)
  }
  const close = async () => {
    await worker.stop()
    await node.close()
  }
  return { worker, held, warnings, deploy, lastOf, isOver, asked, close }
}

const zips = suite('a run whose zip')

zips('is not in the blobs waits, and uses no attempt', async () => {
  const { worker, held, warnings, deploy, lastOf, isOver, asked, close } = await openReal()
  const build = await deploy(zip)
  const run = wantedCall(build)
  await worker.take(run)
  await asked(4) // for the second time under both keys
  assert.is(await lastOf(run.plan.stream_id), 'RunStarted')
  assert.match(
    warnings[0] ?? '',
    new RegExp(`build ${build.build_id} is missing.*restore builds/.*${zip.hash}`),
  )
  held.add(zip)
  await isOver(run.plan.stream_id)
  await close()
})

zips('has other bytes waits, and uses no attempt', async () => {
  const { worker, held, warnings, deploy, lastOf, isOver, asked, close } = await openReal()
  held.add({ hash: zip.hash, bytes: other.bytes })
  const build = await deploy(zip)
  const run = wantedCall(build)
  await worker.take(run)
  await asked(4)
  assert.is(await lastOf(run.plan.stream_id), 'RunStarted')
  assert.match(warnings[0] ?? '', new RegExp(`build ${build.build_id} is damaged.*${other.hash}`))
  held.add(zip)
  await isOver(run.plan.stream_id)
  await close()
})

zips('is missing is logged once for all runs of the build, while runs of others begin', async () => {
  const { worker, held, warnings, deploy, isOver, asked, close } = await openReal()
  held.add(other)
  const missing = await deploy(zip)
  const runs = [wantedCall(missing), wantedCall(missing)]
  for (const run of runs) await worker.take(run)
  await until(() => warnings.length === 1)
  const beside = wantedCall(await deploy(other))
  await worker.take(beside)
  await isOver(beside.plan.stream_id)
  await asked(4)
  assert.is(warnings.length, 1)
  held.add(zip)
  for (const { plan } of runs) await isOver(plan.stream_id)
  await close()
})

zips.run()
