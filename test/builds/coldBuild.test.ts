import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { openRuntime } from '../../src/builds/openRuntime.ts'
import { newId } from '../../src/ids.ts'
import type { LaneRef } from '../../src/ports/runtime.ts'
import { buildBlobs, resultOf, runInfo } from '../sandbox/harness.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'
import { zipBuild, type ZippedBuild } from '../support/zipBuild.ts'

const buildOf = ({ hash }: ZippedBuild): LaneRef => ({
  org_id: newId(),
  env_id: newId(),
  project_id: newId(),
  build_id: newId(),
  hash,
  rights: {},
})

const cold = suite('a build that is not unpacked yet')

cold('takes one turn for all lanes of its runs, so that others are inspected meanwhile', async () => {
  const [needed, uploaded] = [
    await zipBuild({ 'm.js': 'export const f = () => 1' }),
    await zipBuild({ 'm.js': 'export const g = () => 2' }),
  ]
  const blobs = buildBlobs()
  blobs.add(needed)
  const arrival = Promise.withResolvers<void>()
  let asked = 0
  const get: typeof blobs.get = async (key, range) => {
    asked++
    await arrival.promise
    return blobs.get(key, range)
  }
  const runtime = openRuntime({ blobs: { ...blobs, get }, cacheDir: tempDir() })
  const build = buildOf(needed)
  const runs = ['A', 'B', 'C'].map((key) =>
    runtime.invoke({
      build: { ...build, rights: { context: [key] } },
      run: runInfo(),
      target: { ns: 'm', var: 'f' },
      loadInput: () => Promise.resolve({ kind: 'args', args: [] }),
      timeoutMs: 60_000,
      signal: new AbortController().signal,
      onHostCall: () => Promise.resolve(null),
      onLog: () => {},
    }),
  )
  await until(() => asked > 0)
  assert.is(runtime.children, 1)
  const file = join(tempDir(), 'upload.zip')
  writeFileSync(file, uploaded.bytes)
  assert.ok((await runtime.inspect(buildOf(uploaded), { file })).ok)
  arrival.resolve()
  assert.equal(await Promise.all(runs.map(resultOf)), [1, 1, 1])
  await runtime.close()
})

cold.run()
