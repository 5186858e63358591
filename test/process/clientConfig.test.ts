import * as assert from 'uvu/assert'
import { messageOf } from '../../src/errors.ts'
import { readClientConfig } from '../../src/process/clientConfig.ts'
import { suite } from '../support/suite.ts'

const client = suite('the configuration of a client')

client('has the address at which a service in the same directory listens', () => {
  assert.is(readClientConfig({}).url, 'http://127.0.0.1:8080')
  assert.is(readClientConfig({ HOST: '::1', PORT: '9000' }).url, 'http://[::1]:9000')
  assert.is(
    readClientConfig({ SVC_URL: 'https://svc.example/api/', PORT: 'x' }).url,
    'https://svc.example/api',
  )
})

for (const [name, text] of [
  ['SVC_URL', 'svc.example'],
  ['SVC_URL', 'https://user:pass-phrase@svc.example'],
  ['SVC_URL', 'https://svc.example/?env=dev'],
  ['HOST, PORT', '80a'],
  ['SVC_MASTER_KEY', 'pass-phrase'],
] as const)
  client(`refuses ${text}, and names ${name}`, () => {
    const env = { [name === 'HOST, PORT' ? 'PORT' : name]: text }
    let message = ''
    try {
      readClientConfig(env)
    } catch (error) {
      message = messageOf(error)
    }
    assert.match(message, `${name}: expected`)
    assert.not.match(message, 'pass-phrase')
  })

client.run()
