import * as assert from 'uvu/assert'
import { isAllowedOrigin, parseCorsOrigins } from '../../src/ports/corsOrigins.ts'
import { suite } from '../support/suite.ts'

const allows = (setting: string, origin: string): boolean => {
  const origins = parseCorsOrigins(setting)
  if (!origins) throw new Error(`Expected ${setting} to be valid`)
  return isAllowedOrigin(origins, origin)
}

const origins = suite('the origins of pages')

for (const [setting, allowed, refused] of [
  [
    'https://app.example',
    ['https://app.example'],
    [
      'http://app.example',
      'https://app.example:8443',
      'https://app.example.evil.test',
      'https://evil.test/https://app.example',
      'https://xapp.example',
      'null',
      '',
    ],
  ],
  ['https://APP.example:443', ['https://app.example'], ['https://app.example:443']],
  ['http://a.test:3000, http://b.test', ['http://a.test:3000', 'http://b.test'], ['http://a.test']],
  [
    'http://localhost:*',
    ['http://localhost', 'http://localhost:1', 'http://localhost:65535'],
    [
      'https://localhost:1',
      'http://localhost:1.evil.test',
      'http://localhost.evil.test:1',
      'http://localhost:x',
    ],
  ],
  ['http://[::1]:*', ['http://[::1]', 'http://[::1]:5173'], ['http://[::2]:5173']],
  [
    'loopback',
    ['http://localhost:5173', 'https://localhost', 'http://127.0.0.1:8080', 'http://[::1]:1'],
    ['http://127.0.0.2', 'http://localhost.evil.test', 'http://192.168.0.1:8080', 'file://', 'null'],
  ],
  ['loopback,https://app.example', ['http://localhost:1', 'https://app.example'], ['https://other.example']],
] as const)
  origins(`of "${setting}" are exactly those`, () => {
    for (const origin of allowed) assert.is(allows(setting, origin), true, origin)
    for (const origin of refused) assert.is(allows(setting, origin), false, origin)
  })

for (const setting of [
  '*',
  'https://*',
  'https://*.app.example',
  'app.example',
  'https://app.example/',
  'https://app.example/path',
  'https://app.example?a',
  'https://user@app.example',
  'https://app.example,',
  ',',
  'https://a.test https://b.test',
  'https:\\\\a.test',
  'https://a.test\\b',
  'ftp://app.example',
  'null',
  'localhost:*',
  'http://localhost:3000:*',
  'http://localhost:99999',
  'LOOPBACK',
])
  origins(`are not "${setting}"`, () => assert.is(parseCorsOrigins(setting), undefined))

origins.run()
