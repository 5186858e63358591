import { createPrivateKey, createPublicKey, sign, verify } from 'node:crypto'
import * as assert from 'uvu/assert'
import { accountKeyOf } from '../../../src/adapters/acme/accountKey.ts'
import { suite } from '../../support/suite.ts'

const rootKey = (fill: number) => new Uint8Array(32).fill(fill)
const URL = 'https://ca.example/directory'

const account = suite('the account key at a certificate authority')

account('is a P-256 key whose public half belongs to it', () => {
  for (let fill = 0; fill < 50; fill++) {
    const key = createPrivateKey(accountKeyOf(rootKey(fill), URL))
    assert.is(key.asymmetricKeyDetails?.namedCurve, 'prime256v1')
    const text = Buffer.from('signed')
    assert.ok(verify('sha256', text, createPublicKey(key), sign('sha256', text, key)))
  }
})

account('is equal on every node, and different for each installation and authority', () => {
  assert.is(accountKeyOf(rootKey(1), URL), accountKeyOf(rootKey(1), URL))
  assert.is.not(accountKeyOf(rootKey(1), URL), accountKeyOf(rootKey(2), URL))
  assert.is.not(accountKeyOf(rootKey(1), URL), accountKeyOf(rootKey(1), `${URL}2`))
})

account.run()
