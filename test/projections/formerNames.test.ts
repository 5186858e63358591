import * as assert from 'uvu/assert'
import { FormerNames } from '../../src/projections/formerNames.ts'
import { suite } from '../support/suite.ts'

const names = suite('names of former custom domains')

names('are remembered, the latest thousand of each organization', () => {
  const former = new FormerNames()
  former.add({ domain: 'theirs.example', org_id: 'other' })
  for (let i = 0; i < 1000; i++) former.add({ domain: `d${i}.example`, org_id: 'org' })
  former.add({ domain: 'd0.example', org_id: 'org' }) // it is the latest now
  assert.ok(former.has('d1.example'))
  former.add({ domain: 'last.example', org_id: 'org' })
  assert.not(former.has('d1.example'))
  for (const kept of ['d0.example', 'd2.example', 'last.example', 'theirs.example'])
    assert.ok(former.has(kept), kept)
})

names('count for the organization that proved them last', () => {
  const former = new FormerNames()
  former.add({ domain: 'moved.example', org_id: 'org' })
  former.add({ domain: 'moved.example', org_id: 'other' })
  for (let i = 0; i < 1000; i++) former.add({ domain: `d${i}.example`, org_id: 'org' })
  assert.ok(former.has('moved.example') && former.has('d0.example'))
})

names.run()
