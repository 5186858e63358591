import * as assert from 'uvu/assert'
import type { DomainEvent } from '../../src/events/index.ts'
import { REDACTED, redact, resourcesOf } from '../../src/events/redact.ts'
import { suite } from '../support/suite.ts'
import { exampleOf } from './examples.ts'

/** Fields that contain secrets, ciphertext, hashes of secrets or content, wherever they are in a fact. */
const HIDDEN = new Set(
  `mac sealed canary fingerprint acceptance sha256 blob_etag blob_upload_id code error text value
  event_data payload result metadata repl_id`
    .split(/\s+/)
    .concat('master_key_id', 'founded_by'),
)

/** The strings of a value with their paths. */
const stringsIn = (value: unknown, path: readonly string[] = []): (readonly [string, string])[] => {
  if (typeof value === 'string') return [[path.join('.'), value]]
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, field]) => stringsIn(field, [...path, name]))
}

const marked = (value: unknown, path = ''): unknown => {
  if (typeof value === 'string') return `marker of ${path}`
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((item, n) => marked(item, `${path}.${n}`))
  return Object.fromEntries(
    Object.entries(value).map(([name, field]) => [name, marked(field, `${path}.${name}`)]),
  )
}

const redaction = suite('a redacted fact')

for (const example of Object.values(exampleOf))
  redaction(`of the type ${example.type} shows no secret and no content`, () => {
    for (const [path, text] of stringsIn(redact(example))) {
      const fields = path.split('.')
      if (fields.some((field) => HIDDEN.has(field))) assert.is(text, REDACTED, path)
    }
  })

redaction('keeps the fields of the fact and their kinds', () => {
  for (const example of Object.values(exampleOf)) {
    const { type, ...redacted } = redact(example)
    assert.is(type, example.type)
    assert.equal(
      Object.keys(redacted),
      Object.keys(example).filter((name) => name !== 'type'),
    )
  }
})

redaction('shows the ids, names and numbers that say what was changed', () => {
  assert.equal(redact(exampleOf.ProjectRenamed), exampleOf.ProjectRenamed)
  assert.equal(redact(exampleOf.BuildUploaded), exampleOf.BuildUploaded)
  assert.equal(redact(exampleOf.DomainRegistered), exampleOf.DomainRegistered)
  for (const fact of [exampleOf.CertificateFailed, exampleOf.DomainDiverted])
    assert.equal(redact(fact), fact, 'with its message, which the service wrote about public records')
  assert.equal(redact(exampleOf.ContextVariableCreated), {
    ...exampleOf.ContextVariableCreated,
    sealed: REDACTED,
  })
  assert.equal(redact(exampleOf.ApiKeyCreated), { ...exampleOf.ApiKeyCreated, mac: REDACTED })
  assert.equal(redact(exampleOf.SessionCreated), {
    ...exampleOf.SessionCreated,
    mac: REDACTED,
    metadata: REDACTED,
  })
  assert.equal(redact(exampleOf.FileStored), {
    ...exampleOf.FileStored,
    key: REDACTED,
    replaced: { key: REDACTED, size: 2 },
  })
  assert.equal(redact(exampleOf.RunRequested).target, { code: REDACTED, repl_id: REDACTED })
  assert.equal(redact(exampleOf.RunStarted).target, { ns: 'orders', var: 'onCreated' })
})

redaction('shows no field that its schema does not know, however deep', () => {
  for (const example of Object.values(exampleOf)) {
    const fact: DomainEvent = Object.assign({}, example, {
      later: 'a secret',
      deeper: { later: ['a secret'] },
    })
    assert.not.match(JSON.stringify(redact(fact)), 'a secret')
  }
  const functions: unknown = [{ ns: 'a', var: 'b', later: 'a secret' }]
  const build = Object.assign({}, exampleOf.BuildUploaded, { functions }) as DomainEvent
  assert.not.match(JSON.stringify(redact(build)), 'a secret')
})

redaction('shows nothing of a value that does not have the type of its field', () => {
  for (const example of Object.values(exampleOf)) {
    const wrong = Object.fromEntries(
      Object.keys(example).map((name) => [name, { later: 'a secret', deeper: { list: ['a secret'] } }]),
    )
    const redacted = redact({ ...wrong, type: example.type } as unknown as DomainEvent)
    assert.not.match(JSON.stringify(redacted), 'a secret', example.type)
  }
})

redaction('shows nothing of a type that this build does not know', () => {
  const later = { type: 'SecretStored', secret: 'a secret', list: ['a secret'] } as unknown as DomainEvent
  assert.equal(redact(later), { type: 'SecretStored' })
})

redaction('of any type shows a string only where the schema permits it', () => {
  const shown = new Set<string>()
  for (const example of Object.values(exampleOf)) {
    const fact = { ...(marked(example) as object), type: example.type } as DomainEvent
    for (const [path, text] of stringsIn(redact(fact)))
      if (text.startsWith('marker')) shown.add(`${example.type}.${path.replace(/\.\d+/g, '')}`)
  }
  for (const field of HIDDEN)
    assert.not.ok(
      [...shown].some((path) => path.split('.').includes(field)),
      field,
    )
  assert.ok(shown.has('ContextVariableCreated.key'))
  assert.not.ok(shown.has('FileStored.key'), 'a key of the blobs')
})
redaction.run()

const resources = suite('the resources of a fact')

resources('are its ids, and the paths, keys and domains in it, each once', () => {
  assert.equal(resourcesOf(exampleOf.BuildDeployed), ['b', 'p', 'b0'])
  assert.equal(resourcesOf(exampleOf.FileStored), ['f', 'a/b.txt', 'r'])
  assert.equal(resourcesOf(exampleOf.ContextVariableUpdated), ['p', 'API_KEY'])
  assert.equal(resourcesOf(exampleOf.DomainActivated), ['d', 'hooks.example.com'])
  assert.equal(resourcesOf(exampleOf.SessionsEnded), ['k', 'se'])
  assert.equal(resourcesOf(exampleOf.OrgChanged), ['o'])
})

resources('are none of its secrets', () => {
  for (const example of Object.values(exampleOf)) {
    const strings = stringsIn(redact(example)).map(([, text]) => text)
    for (const resource of resourcesOf(example)) assert.ok(strings.includes(resource), resource)
  }
})
resources.run()
