import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import * as assert from 'uvu/assert'
import { suite } from '../support/suite.ts'

const HEAP_MB = 96
const largeEvents = fileURLToPath(new URL('./largeEvents.ts', import.meta.url))

const memory = suite('the memory of read models', { timeoutMs: 300_000 })
memory('is bounded by bytes: 4,504 events of 62 KB are folded in a heap of 96 MB', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [
    `--max-old-space-size=${HEAP_MB}`,
    largeEvents,
  ])
  assert.is(stdout.trim(), '4504')
})
memory.run()
