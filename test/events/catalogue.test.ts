import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import * as assert from 'uvu/assert'
import type { DomainEvent } from '../../src/events/index.ts'
import { schemaOf } from '../../src/events/index.ts'
import { BREAKS, problemOf } from '../support/factCheck.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { exampleOf } from './examples.ts'

const metadata = { env_id: 'env', correlation_id: 'c' }
const problem = (event: DomainEvent, more: Readonly<Record<string, unknown>> = {}) =>
  problemOf({ id: 'i', event, metadata: { ...metadata, ...more } })

const catalogue = suite('the event catalogue')

catalogue('has a valid example of every type', () => {
  assert.equal(Object.keys(exampleOf).sort(), Object.keys(schemaOf).sort())
  for (const event of Object.values(exampleOf)) assert.is(problem(event), undefined)
})

catalogue('names each schema by the type of its facts', () => {
  for (const [type, schema] of Object.entries(schemaOf)) assert.is(schema.properties.type.const, type)
})

catalogue('refuses a field that it does not know', () => {
  for (const event of Object.values(exampleOf))
    assert.match(problem(Object.assign({ misspelt: 1 }, event)) ?? '', `${event.type}: /misspelt`)
})

catalogue('refuses a fact that lacks a field', () => {
  for (const { type, ...fields } of Object.values(exampleOf))
    if (Object.keys(fields).length > 0) assert.match(problem({ type } as DomainEvent) ?? '', type)
})

catalogue('refuses an unknown field of the metadata', () =>
  assert.match(problem(exampleOf.WorkerLost, { envid: 'e' }) ?? '', '/envid'),
)

catalogue('refuses a type that it does not know', () =>
  assert.is(
    problem({ type: 'RunForgotten' } as unknown as DomainEvent),
    'RunForgotten is not in the catalogue',
  ),
)

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url))
/** Appends a fact in a process that is checked as every process of a test is. */
const appended = (event: object) =>
  spawnSync(
    process.execPath,
    [
      '--import',
      path('../support/checkFacts.ts'),
      path('../fixtures/eventStore/appendOnce.ts'),
      tempDir(),
      JSON.stringify({ id: 'i', event, metadata }),
    ],
    { encoding: 'utf8' },
  )

const check = suite('the check of appended facts')

check('fails a process that appends a fact with a misspelt field, and names it', () => {
  const { status, stderr } = appended({ ...exampleOf.WorkerLost, workerid: 'w' })
  assert.is(status, 1)
  assert.match(stderr, `${BREAKS} WorkerLost: /workerid`)
})

check('lets a process append valid facts', () => {
  const { status, stderr } = appended(exampleOf.WorkerLost)
  assert.is(status, 0)
  assert.is(stderr, '')
})

catalogue.run()
check.run()
