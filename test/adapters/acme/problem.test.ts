import * as assert from 'uvu/assert'
import { problemOf, refusalOf } from '../../../src/adapters/acme/problem.ts'
import { suite } from '../../support/suite.ts'

const type = (kind: string) => `urn:ietf:params:acme:error:${kind}`

const refusal = suite('the refusal of a certificate authority')

refusal('is explained with its own words and what to do', () => {
  assert.is(
    refusalOf({ type: type('caa'), detail: 'CAA record for a.example prevents issuance.' }),
    'The certificate authority refused the certificate (CAA record for a.example prevents issuance): ' +
      'allow the certificate authority in the CAA records of the domain',
  )
  assert.match(refusalOf({ type: type('rateLimited'), detail: 'too many' }), /rate limit is reached/)
})

refusal('of an unknown type is shown as it is', () => {
  assert.is(
    refusalOf({ type: type('new'), detail: 'why' }),
    'The certificate authority refused the certificate (why)',
  )
  assert.match(refusalOf({}), /no reason given/)
  assert.ok(refusalOf({ detail: 'x'.repeat(10_000) }).length < 500)
})

refusal('may have any form', () => {
  for (const value of [null, 1, 'text', [], { type: 1, detail: {} }]) assert.equal(problemOf(value), {})
})

refusal.run()
