import * as assert from 'uvu/assert'
import { keyOf, openSignature } from '../../../src/commands/webhooks/signatures.ts'
import { deliveryIdOf } from '../../../src/commands/webhooks/deliveryId.ts'
import { isAppError } from '../../../src/errors.ts'
import type { VerifyPreset } from '../../../src/events/project.ts'
import { suite } from '../../support/suite.ts'

interface Signed {
  readonly preset: VerifyPreset
  readonly secret: string
  readonly headers: Record<string, string>
  readonly body: string
  /** Seconds since 1970. */
  readonly at: number
}

/** Examples that the providers publish. */
const PUBLISHED: readonly Signed[] = [
  {
    preset: 'github',
    secret: "It's a Secret to Everybody",
    headers: {
      'x-hub-signature-256': 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17',
    },
    body: 'Hello, World!',
    at: 0,
  },
  {
    preset: 'slack',
    secret: '8f742231b10e8888abcd99yyyzzz85a5',
    headers: {
      'x-slack-request-timestamp': '1531420618',
      'x-slack-signature': 'v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503',
    },
    body: 'token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c',
    at: 1531420618,
  },
  {
    preset: 'standard-webhooks',
    secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
    headers: {
      'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      'webhook-timestamp': '1614265330',
      'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    },
    body: '{"test": 2432232314}',
    at: 1614265330,
  },
]

const check = ({ preset, secret, headers, body, at }: Signed): string => {
  try {
    const signature = openSignature(preset, headers, keyOf(preset, secret), at * 1000)
    for (const part of [body.slice(0, 3), body.slice(3)]) signature.update(Buffer.from(part))
    signature.finish()
    return 'valid'
  } catch (error) {
    if (isAppError(error, 'unauthorized')) return error.message
    throw error
  }
}
const NO_MATCH = 'The webhook is not verified: no signature of the request matches its body and the secret'

const signatures = suite('the signature of a webhook')

for (const signed of PUBLISHED) {
  const { preset } = signed
  signatures(`of ${preset} is valid as the provider documents it`, () => assert.is(check(signed), 'valid'))

  signatures(`of ${preset} is not valid for another body or secret`, () => {
    assert.is(check({ ...signed, body: `${signed.body} ` }), NO_MATCH)
    assert.is(check({ ...signed, secret: 'whsec_AAAA' }), NO_MATCH)
  })

  signatures(`of ${preset} is required, with each of its headers`, () => {
    for (const name of Object.keys(signed.headers)) {
      const { [name]: _, ...headers } = signed.headers
      assert.is(check({ ...signed, headers }), `The webhook is not verified: the header ${name} is missing`)
    }
  })

  if (signed.at === 0) continue
  signatures(`of ${preset} is valid for five minutes`, () => {
    for (const seconds of [-300, 300]) assert.is(check({ ...signed, at: signed.at + seconds }), 'valid')
    for (const seconds of [-301, 301])
      assert.match(check({ ...signed, at: signed.at + seconds }), /differs by more than 300 s/)
  })
}

/** Stripe publishes no example: this signature was computed with `openssl dgst -sha256 -hmac`. */
const STRIPE: Signed = {
  preset: 'stripe',
  secret: 'whsec_test_secret',
  headers: {
    'stripe-signature':
      't=1700000000,v1=248a374f50f943a28b0f6ab50faf9a7e7e29b710fa26df9fb1618b9bf8ea9c9a,v0=6ffbb59b2300aae63f272406069a9788598b792a944a07aba816edb039989a39',
  },
  body: '{"id":"evt_1"}',
  at: 1700000000,
}

signatures('of stripe is one of those in its header, in the scheme v1', () => {
  assert.is(check(STRIPE), 'valid')
  const header = STRIPE.headers['stripe-signature'] ?? ''
  const withHeader = (text: string) => check({ ...STRIPE, headers: { 'stripe-signature': text } })
  assert.is(withHeader(header.replace('v1=', `v1=${'0'.repeat(64)},v1=`)), 'valid')
  assert.is(withHeader(header.replace('v1=', 'v0=')), NO_MATCH)
  assert.is(withHeader(header.replace('t=1700000000', 't=1700000001')), NO_MATCH)
  assert.match(withHeader(header.replace('t=1700000000,', '')), /contains no time in seconds/)
})

signatures('of standard-webhooks may be sent under the names of Svix, and one of several', () => {
  const [, , signed] = PUBLISHED as readonly [Signed, Signed, Signed]
  const headers = Object.fromEntries(
    Object.entries(signed.headers).map(([name, value]) => [name.replace('webhook-', 'svix-'), value]),
  )
  assert.is(check({ ...signed, headers }), 'valid')
  const several = `v1a,xxx v1,${'A'.repeat(43)}= ${signed.headers['webhook-signature']}`
  assert.is(check({ ...signed, headers: { ...signed.headers, 'webhook-signature': several } }), 'valid')
})

signatures('cannot be empty or of another length', () => {
  for (const value of ['', 'sha256=', 'sha256=00', `sha256=${'0'.repeat(66)}`, 'x'])
    assert.not.equal(
      check({ ...(PUBLISHED[0] as Signed), headers: { 'x-hub-signature-256': value } }),
      'valid',
    )
})

signatures.run()

const ids = suite('the id of a delivery')

const whole = (text: string) => ({ whole: Buffer.from(text), head: Buffer.alloc(0) })
const large = (head: string) => ({ whole: null, head: Buffer.from(head) })

ids('is where its provider writes it', () => {
  assert.is(deliveryIdOf('github', { 'x-github-delivery': 'g-1' }, whole('')), 'g-1')
  assert.is(deliveryIdOf('standard-webhooks', { 'webhook-id': 'msg_1' }, whole('')), 'msg_1')
  assert.is(deliveryIdOf('standard-webhooks', { 'svix-id': 'msg_2' }, whole('')), 'msg_2')
  const emptied = { 'webhook-id': '', 'svix-id': 'msg_2' } // the signature counts for the second one
  assert.is(deliveryIdOf('standard-webhooks', emptied, whole('')), 'msg_2')
  assert.is(deliveryIdOf('stripe', {}, whole('{"object":"event","id":"evt_1"}')), 'evt_1')
  assert.is(deliveryIdOf('slack', {}, whole('{"token":"x","event_id":"Ev1"}')), 'Ev1')
})

ids('of a large body is read if it comes first', () => {
  assert.is(deliveryIdOf('stripe', {}, large('{\n  "id": "evt_2",\n  "object"')), 'evt_2')
  assert.is(deliveryIdOf('stripe', {}, large('{"object":"event","id":"evt_1"')), undefined)
  assert.is(deliveryIdOf('slack', {}, large('{"event_id":"Ev1"')), undefined)
})

ids('is absent if there is none that can be trusted', () => {
  assert.is(deliveryIdOf('github', {}, whole('')), undefined)
  for (const id of ['', 'a b', 'a\nb', 'x'.repeat(256)])
    assert.is(deliveryIdOf('github', { 'x-github-delivery': id }, whole('')), undefined)
  for (const body of ['', 'a=1', 'null', '[]', '{"id":7}', '{"id":{}}'])
    assert.is(deliveryIdOf('stripe', {}, whole(body)), undefined)
})

ids.run()
