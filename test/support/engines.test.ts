import * as assert from 'uvu/assert'
import { engineReport, exercisedIn } from './engines.ts'
import { suite } from './suite.ts'

const all = {
  SVC_TEST_EVENT_STORE: 'esdb://a',
  SVC_TEST_MONGODB: 'mongodb://user:secret@b',
  SVC_TEST_REDIS: 'redis://c',
  SVC_TEST_S3: 's3://key:secret@d/e',
}

const report = suite('the report on engines')

report('names the variables to set when only the embedded engines were exercised', () => {
  assert.is(
    engineReport(new Set(), {}),
    'engines: none but the embedded exercised; EventStoreDB, MongoDB, Redis, S3 not ' +
      '(set SVC_TEST_EVENT_STORE, SVC_TEST_MONGODB, SVC_TEST_REDIS, SVC_TEST_S3)',
  )
})

report('does not report the stand-in as EventStoreDB', () => {
  const { SVC_TEST_MONGODB, SVC_TEST_S3 } = all
  assert.is(
    engineReport(new Set(['MongoDB', 'EventStoreDB stand-in']), { SVC_TEST_MONGODB, SVC_TEST_S3: '' }),
    'engines: EventStoreDB stand-in, MongoDB exercised; EventStoreDB, Redis, S3 not ' +
      '(set SVC_TEST_EVENT_STORE, SVC_TEST_REDIS, SVC_TEST_S3)',
  )
  assert.match(
    engineReport(new Set(['MongoDB', 'S3']), { SVC_TEST_MONGODB, SVC_TEST_S3 }),
    /^engines: MongoDB, S3 exercised; EventStoreDB, Redis not \(set SVC_TEST_EVENT_STORE, SVC_TEST_REDIS\)$/,
  )
})

report('omits engines that were set but never used, and shows no URL', () => {
  assert.is(
    engineReport(new Set(['Redis']), all),
    'engines: Redis exercised; EventStoreDB, MongoDB, S3 set, but no test that ran asked for it',
  )
  assert.is(
    engineReport(new Set(['EventStoreDB', 'MongoDB', 'Redis', 'S3']), all),
    'engines: EventStoreDB, MongoDB, Redis, S3 exercised',
  )
})

report('finds the report of a file between the dots of its tests', () => {
  assert.equal(exercisedIn(' a  • [exercised: MongoDB]• \n[exercised: EventStoreDB stand-in]  (2 / 2)'), [
    'MongoDB',
    'EventStoreDB stand-in',
  ])
  assert.equal(exercisedIn(' a  • •   (2 / 2)'), [])
})

report.run()
