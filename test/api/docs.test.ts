import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { readPages } from '../../src/api/docs/pages.ts'
import { searchPages } from '../../src/api/docs/searchPages.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'

const server = await startServer()
const { api } = server
const root = join(import.meta.dirname, '../..')
const pages = await readPages()

const docs = suite('the documentation of a running service')

docs('lists every page in /llms.txt, and serves it as Markdown', async () => {
  const { status, text, headers } = await api.send('GET', `${api.url}/llms.txt`)
  assert.is(status, 200)
  assert.match(headers.get('content-type') ?? '', /^text\/plain/)
  assert.match(text, /^# svc\n\n> /)
  const urls = [...text.matchAll(/^- \[.+?\]\((.+?)\): \S/gm)].map(([, url = '']) => url)
  assert.is(urls.length, pages.length)
  for (const url of urls) {
    const page = await api.send('GET', url)
    assert.is(page.status, 200, url)
    assert.match(page.headers.get('content-type') ?? '', /^text\/markdown/)
    assert.is(page.text, readFileSync(join(root, new URL(url).pathname), 'utf8'))
  }
})

docs('is not sent again to a client that has it', async () => {
  const url = `${api.url}/docs/mcp.md`
  const etag = (await api.send('GET', url)).headers.get('etag') ?? ''
  const headers = { 'If-None-Match': etag, 'Cache-Control': 'max-age=0' }
  assert.is((await api.send('GET', url, { headers })).status, 304)
})

docs('has no other file of the package', async () => {
  for (const path of [
    'style.md',
    'guides/none.md',
    'guides/..%2Fapi.md',
    '..%2FREADME.md',
    'decisions%2F0001.md',
  ])
    assert.is((await api.refused('GET', `${api.url}/docs/${path}`)).status, 404, path)
})

docs('is in the package', () => {
  const { files } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { files: string[] }
  for (const { path } of pages)
    assert.ok(
      files.some((file) => `docs/${path}` === file || `docs/${path}`.startsWith(`${file}/`)),
      path,
    )
  for (const file of files.filter((each) => each.startsWith('docs/'))) assert.ok(existsSync(join(root, file)))
})

docs('is found by its words, sections with most of them first', () => {
  const [first] = searchPages(pages, 'How do I use a custom domain?', 3)
  assert.match(`${first?.heading}`, /domain/i)
  assert.equal(searchPages(pages, 'how do I', 3), [])
  assert.equal(searchPages(pages, '***', 3), [])
})

docs.after(() => server.stop())
docs.run()
