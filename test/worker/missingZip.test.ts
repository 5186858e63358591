import * as assert from 'uvu/assert'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { zipBuild } from '../support/zipBuild.ts'
import { openReal } from './openReal.ts'
import { wantedCall } from './openWorker.ts'

const zip = await zipBuild({ 'a.js': 'export const b = () => 1' })
const other = await zipBuild({ 'a.js': 'export const b = () => 2' })

/** `asked` resolves when the blobs of the builds were asked for this many more. */
const open = async () => {
  const { held, ...real } = await openReal()
  const asked = async (more: number) => {
    const enough = held.asked + more
    await until(() => held.asked >= enough)
  }
  return { ...real, held, asked }
}

const zips = suite('a run whose zip')

zips('is not in the blobs waits, and uses no attempt', async () => {
  const { worker, held, warnings, deploy, lastOf, isOver, asked, close } = await open()
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
  const { worker, held, warnings, deploy, lastOf, isOver, asked, close } = await open()
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
  const { worker, held, warnings, deploy, isOver, asked, close } = await open()
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
