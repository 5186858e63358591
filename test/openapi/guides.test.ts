import { readdirSync, readFileSync } from 'node:fs'
import * as assert from 'uvu/assert'
import { allRoutes } from '../../src/api/routes/index.ts'
import { upload, type BuildUpload } from '../support/build.ts'
import { startServer, type TestServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { zipBuild } from '../support/zipBuild.ts'

const textOf = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')

/** The TypeScript of a page, block by block. */
const modulesIn = (path: string): string[] =>
  [...textOf(path).matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code = '']) => code)

const guides = suite<{ server: TestServer }>('the guides')

guides.before(async (context) => {
  context.server = await startServer()
  await context.server.api.post('/projects', { name: 'guides' })
})
guides.after(({ server }) => server.stop())

guides('show functions that load', async ({ server: { api } }) => {
  const modules = ['README.md', 'docs/functions.md'].flatMap(modulesIn)
  assert.ok(modules.length >= 4)
  const files = Object.fromEntries(modules.map((code, index) => [`guide${index}.ts`, code]))
  const { status, json, text } = await upload(api, 'guides', await zipBuild(files))
  assert.is(status, 201, text)
  const { build_id } = (json as { data: BuildUpload }).data
  await api.post(`/projects/guides/builds/${build_id}/deploy`)
  assert.is((await api.page('/projects/guides/webhooks')).pagination.total, 6)
  assert.is((await api.page('/projects/guides/event-handlers')).pagination.total, 2)
})

guides('name endpoints that exist', () => {
  const paths = allRoutes.map(({ path }) => new RegExp(`^${path.replace(/[:*]\w+/g, '[^/]+')}$`))
  for (const page of ['README.md', 'docs/api.md', 'docs/functions.md', 'docs/operations.md']) {
    for (const [, path = ''] of textOf(page).matchAll(
      /(\/v1\/[\w/{}-]+|\/(?:docs|openapi\.json|status|healthz|readyz)(?=[`"?]))/g,
    )) {
      assert.ok(
        paths.some((pattern) => pattern.test(path)),
        `${page}: ${path}`,
      )
    }
  }
})

guides('link to pages and headings that exist', () => {
  const headingsOf = (text: string) =>
    [...text.matchAll(/^#+ (.*)$/gm)].map(([, title = '']) => title.toLowerCase().replaceAll(' ', '-'))
  for (const page of [
    'README.md',
    'docs/api.md',
    'docs/functions.md',
    'docs/operations.md',
    'docs/scaling.md',
    'docs/architecture.md',
    'docs/glossary.md',
    ...readdirSync(new URL('../../docs/guides/', import.meta.url)).map((page) => `docs/guides/${page}`),
  ]) {
    for (const [, link = ''] of textOf(page).matchAll(/\]\(([^)]+)\)/g)) {
      const { protocol, pathname, hash } = new URL(link, `file:///${page}`)
      const path = pathname.slice(1)
      if (protocol !== 'file:' || path.endsWith('/')) continue
      const text = textOf(path)
      if (hash) assert.ok(headingsOf(text).includes(hash.slice(1)), `${page}: ${link}`)
    }
  }
})

guides.run()
