import * as assert from 'uvu/assert'
import { Readiness } from '../../src/process/readiness.ts'
import { suite } from '../support/suite.ts'

const readiness = suite('the readiness of a node')

readiness('is true once the start has ended, with a reason until then', () => {
  const node = new Readiness(new AbortController().signal)
  assert.is(node.reason, 'The server is starting')
  node.waitFor('The event store does not answer')
  assert.is(node.reason, 'The event store does not answer')
  node.waitFor(null)
  assert.is(node.reason, 'The server is starting')
  node.started()
  assert.is(node.reason, null)
})

readiness('ends for good when a loop in the background was stopped, with the first reason', () => {
  const node = new Readiness(new AbortController().signal)
  node.started()
  node.fail('The directory failed 8 times in a row and was stopped: broken')
  node.fail('The saga retryRuns failed 8 times in a row and was stopped: broken')
  assert.is(node.reason, 'The directory failed 8 times in a row and was stopped: broken')
})

readiness('ends while writes are refused', () => {
  const node = new Readiness(new AbortController().signal)
  node.started()
  node.refusing('The disk is full')
  assert.is(node.reason, 'Writes are refused: The disk is full')
  node.refusing(null)
  assert.is(node.reason, null)
})

readiness('names refused writes first while read models are built, because they hold up the build', () => {
  const node = new Readiness(new AbortController().signal)
  node.waitForBuilding(() => [{ name: 'runs@6', percent: 0 }])
  node.refusing('The disk is full')
  assert.is(node.reason, 'Writes are refused: The disk is full')
  node.refusing(null)
  assert.is(node.reason, 'The read models are being built from the log: runs@6 (0 %)')
})

readiness('ends when the server stops', () => {
  const stopping = new AbortController()
  const node = new Readiness(stopping.signal)
  node.started()
  stopping.abort()
  assert.is(node.reason, 'The server is stopping')
})

readiness('ends while an engine is away, and a stopped loop is the more important reason', () => {
  const outages: { reason: string | null } = { reason: null }
  const node = new Readiness(new AbortController().signal, outages)
  node.started()
  outages.reason = 'The event store has not answered since noon'
  assert.is(node.reason, outages.reason)
  outages.reason = null
  assert.is(node.reason, null)
  outages.reason = 'The event store has not answered since noon'
  node.fail('broken')
  assert.is(node.reason, 'broken')
})

readiness.run()
