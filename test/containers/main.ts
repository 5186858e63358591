import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { getContainerRuntimeClient } from 'testcontainers'
import { messageOf } from '../../src/errors.ts'
import { type EngineVariables, startEngines } from './engines.ts'

/**
 * `npm run test:containers [pattern…]` runs `npm test` against EventStoreDB, MongoDB, Redis and MinIO in containers,
 * which it stops at its end. The exit code is 1 without a container engine, and when an engine or a test fails.
 */
const main = async (): Promise<number> => {
  try {
    await getContainerRuntimeClient()
  } catch (error) {
    process.stderr.write(
      `Expected Docker, or another engine that testcontainers supports, got: ${messageOf(error)}.\n` +
        'Start it and try again. Or set any of SVC_TEST_EVENT_STORE, SVC_TEST_MONGODB, SVC_TEST_REDIS and ' +
        'SVC_TEST_S3 to running engines, and use `npm test`.\n',
    )
    return 1
  }
  const { variables, stop } = await startEngines()
  try {
    return await runTests(variables)
  } finally {
    await stop()
  }
}

const runTests = async (variables: EngineVariables): Promise<number> => {
  const runner = fileURLToPath(new URL('../support/uvu.ts', import.meta.url))
  const tests = spawn(process.execPath, [runner, ...process.argv.slice(2)], {
    env: { ...process.env, ...variables },
    stdio: 'inherit',
  })
  const [code] = (await once(tests, 'exit')) as [number | null]
  return code ?? 1
}

process.exitCode = await main()
