import * as assert from 'uvu/assert'
import { PermanentError } from '../../src/errors.ts'
import type { Recorded } from '../../src/events/event.ts'
import { schemaOf } from '../../src/events/index.ts'
import { readable, upcast, versionOf, versionsWith } from '../../src/events/upcast.ts'
import { suite } from '../support/suite.ts'
import { exampleOf } from './examples.ts'

const stored = (v: number | undefined, event: object = exampleOf.ProjectCreated): Recorded => ({
  id: 'i',
  stream: 'project-p',
  revision: 0,
  cursor: '0000000000000001',
  at: '2026-05-01T10:00:00.000Z',
  event: event as Recorded['event'],
  metadata: { env_id: 'env', correlation_id: 'c', ...(v !== undefined && { v }) },
})

/** A build in which the schema of `ProjectCreated` changed twice. */
const { versionOf: later, upcast: upcastLater } = versionsWith({
  ProjectCreated: [
    (fact) => ({ ...fact, name: `${String(fact['name'])} v2` }),
    (fact) => ({ ...fact, name: `${String(fact['name'])} v3` }),
  ],
})

const versions = suite('versions of facts')

versions('begin with 1 and increase with each change of the schema', () => {
  for (const event of Object.values(exampleOf)) assert.is(versionOf(event.type), 1)
  assert.equal([later('ProjectCreated'), later('ProjectRenamed')], [3, 1])
})

versions('are 1 where none was stored, as in the log of 0.1.0', () => {
  const fact = stored(undefined)
  assert.is(upcast(fact), fact)
  assert.equal(upcastLater(fact).event, { ...exampleOf.ProjectCreated, name: 'shop v2 v3' })
})

versions('are the same fact, untouched, when current', () => {
  for (const event of Object.values(exampleOf)) {
    const fact = stored(1, event)
    assert.is(upcast(fact), fact)
  }
})

versions('are raised from the one that was written, each change once', () => {
  assert.equal(upcastLater(stored(1)).event, { ...exampleOf.ProjectCreated, name: 'shop v2 v3' })
  const second = upcastLater(stored(2))
  assert.equal(second.event, { ...exampleOf.ProjectCreated, name: 'shop v3' })
  assert.equal(second.metadata, { env_id: 'env', correlation_id: 'c', v: 3 })
  assert.equal(upcastLater(stored(3)).event, exampleOf.ProjectCreated)
})

const NAME = (type: string, v: number) =>
  `The fact ${type} v${v}, id i, revision 0 of project-p, cursor 0000000000000001 cannot be processed: `
const refusal = (fact: Recorded): string => {
  try {
    readable(fact)
  } catch (error) {
    if (error instanceof PermanentError) return error.message
    throw error
  }
  throw new Error('Expected a refusal')
}

versions('newer than the build are refused by name', () => {
  assert.is(refusal(upcast(stored(2))), `${NAME('ProjectCreated', 2)}this build knows versions up to 1`)
  assert.is(refusal(upcastLater(stored(4))), `${NAME('ProjectCreated', 4)}this build knows versions up to 3`)
})

versions('of an unknown type are refused by name', () =>
  assert.is(
    refusal(upcast(stored(1, { type: 'ProjectArchived' }))),
    `${NAME('ProjectArchived', 1)}this build knows no such type`,
  ),
)

versions('that a change cannot read are refused by name', () => {
  const { upcast: broken } = versionsWith({
    ProjectCreated: [
      () => {
        throw new TypeError('no name')
      },
    ],
  })
  assert.is(refusal(broken(stored(1))), `${NAME('ProjectCreated', 1)}version 2 cannot be made of it: no name`)
})

versions('are returned when they can be read', () => {
  const fact = stored(1)
  assert.is(readable(fact), fact)
})

versions('exist for every type of the catalogue', () =>
  assert.equal(Object.keys(exampleOf).sort(), Object.keys(schemaOf).sort()),
)

versions.run()
