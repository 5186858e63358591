import * as assert from 'uvu/assert'
import { isReplicated } from '../../../src/adapters/mongodb/replication.ts'
import { suite } from '../../support/suite.ts'

const hello = suite('the hello of a MongoDB')

for (const [what, reply, expected] of [
  ['a single server', { isWritablePrimary: true, ok: 1 }, false],
  ['a member of a replica set', { isWritablePrimary: true, setName: 'rs0', ok: 1 }, true],
  ['the router of a sharded cluster', { isWritablePrimary: true, msg: 'isdbgrid', ok: 1 }, true],
] as const)
  hello(`of ${what} ${expected ? 'needs' : 'does not need'} reads of what most members have`, () =>
    assert.is(isReplicated(reply), expected),
  )

hello.run()
