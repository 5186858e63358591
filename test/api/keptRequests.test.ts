import * as assert from 'uvu/assert'
import { openBlobs } from '../../src/adapters/embedded/blobs.ts'
import { presentRunLog } from '../../src/api/present/runLogs.ts'
import { Payloads } from '../../src/content/payloads.ts'
import { isAppError } from '../../src/errors.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

const blobs = await openBlobs({ dir: tempDir() })

/** The output of a run whose large request is no longer in the blobs. */
const outputOf = async (payloads: Payloads) => {
  const request = await payloads.keep({ method: 'POST', url: 'x'.repeat(100_000) }, { env_id: 'env' })
  await blobs.remove(request.ref?.key ?? '')
  return presentRunLog('run', { lines: [{ at: 'now', source: 'stdout', text: 'kept' }], request }, payloads)
}

const requests = suite('the output of a webhook run')
requests.after(() => blobs.close())

requests('remains when the retention period of its request has ended', async () => {
  const { request, lines } = await outputOf(new Payloads(blobs, { isExpired: async () => true }))
  assert.is(request, null)
  assert.is(lines[0]?.text, 'kept')
})

requests('is refused while its request is missing', async () => {
  const refusal = await outputOf(new Payloads(blobs)).then(String, (error: unknown) => error)
  assert.ok(isAppError(refusal, 'unavailable'), String(refusal))
})

requests.run()
