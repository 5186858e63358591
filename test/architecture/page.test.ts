import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import * as assert from 'uvu/assert'
import { suite } from '../support/suite.ts'
import { files } from './imports.ts'

const root = join(import.meta.dirname, '../..')
const page = readFileSync(join(root, 'docs/architecture.md'), 'utf8')

const PATH = /\b(?:src|test|docs|infra|bench|examples)\/[\w./-]*\w\/?/g

const architecture = suite('docs/architecture.md')

architecture('names only files and folders that exist', () => {
  const named = [...new Set(page.match(PATH))]
  assert.ok(named.length > 50, `Expected the page to name its files, got ${named.length} paths`)
  assert.equal(
    named.filter((path) => !existsSync(join(root, path))),
    [],
  )
})

architecture('names every folder under src', () => {
  const folders = [...new Set(files.filter((file) => file.includes('/')).map(dirname))]
  assert.equal(
    folders.filter((folder) => !page.includes(`src/${folder}/`)),
    [],
  )
})

architecture.run()

const guarantees = suite('docs/guarantees.md')

guarantees('names only tests that exist, and some for each guarantee', () => {
  const sections = readFileSync(join(root, 'docs/guarantees.md'), 'utf8').split(/^## /m).slice(1)
  assert.ok(sections.length >= 9)
  for (const section of sections) {
    const named = section.match(PATH) ?? []
    assert.ok(named.length > 0, `Expected tests of ${section.split('\n')[0]}`)
    assert.equal(
      named.filter((path) => !existsSync(join(root, path))),
      [],
    )
  }
})

guarantees.run()
