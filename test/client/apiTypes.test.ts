import { readFileSync } from 'node:fs'
import * as assert from 'uvu/assert'
import { suite } from '../support/suite.ts'
import { apiTypes, path } from './apiTypes.ts'

const types = suite('the types of svc/client')

types('are those of the OpenAPI document: after a change of a route, `npm run client:types` was run', () => {
  assert.ok(readFileSync(path, 'utf8') === apiTypes(), 'Expected `npm run client:types` to change nothing')
})

types('leave no body and no reply unknown, apart from data of users', () => {
  const text = apiTypes()
  assert.not.match(text, /readonly (?:body|reply): unknown$/m)
})

types.run()
