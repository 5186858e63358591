import { mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { brotliDecompressSync } from 'node:zlib'
import * as assert from 'uvu/assert'
import { isAppError } from '../../src/errors.ts'
import { type Dashboard, openDashboard, writeDashboard } from '../../src/package/dashboard.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

const write = (dir: string, files: Readonly<Record<string, string>>): void => {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(dir, path)), { recursive: true })
    writeFileSync(join(dir, path), text)
  }
}

const checkout = (files: Readonly<Record<string, string>>): string => {
  const dir = tempDir()
  write(dir, files)
  return dir
}

const text = (dashboard: Dashboard, path: string): string => dashboard.get(path)?.bytes.toString() ?? ''

/** The assets that the page loads, in its order. */
const loadedBy = (dashboard: Dashboard): string[] =>
  [...text(dashboard, 'index.html').matchAll(/(?:src|href)="\/ui\/(assets\/[^"]+)"/g)].map(
    ([, path = '']) => path,
  )

const dashboards = suite('the files of the dashboard')

dashboards('are a page, and assets whose names change with their content', async () => {
  const one = await openDashboard(checkout({ 'src/ui/main.tsx': 'console.log("one")' }))()
  const same = await openDashboard(checkout({ 'src/ui/main.tsx': 'console.log("one")' }))()
  const other = await openDashboard(checkout({ 'src/ui/main.tsx': 'console.log("two")' }))()
  const [script = ''] = loadedBy(one)
  assert.match(text(one, script), 'console.log("one")')
  assert.equal([...same.keys()], [...one.keys()])
  assert.is.not(loadedBy(other)[0], script)
})

dashboards('load the style sheet once, whether the script imports it or not', async () => {
  for (const main of ['import "./styles.css"', 'console.log(1)']) {
    const dir = checkout({ 'src/ui/main.tsx': main, 'src/ui/styles.css': 'body { color: red }' })
    const built = await openDashboard(dir)()
    const styles = loadedBy(built).filter((path) => path.endsWith('.css'))
    assert.equal(
      styles.map((path) => text(built, path).trim()),
      ['body{color:red}'],
    )
  }
})

dashboards('are compressed too', async () => {
  const built = await openDashboard(checkout({ 'src/ui/main.tsx': 'console.log("one")' }))()
  for (const { bytes, brotli } of built.values()) assert.ok(brotliDecompressSync(brotli).equals(bytes))
})

dashboards('contain no code in the page, which its policy would refuse', async () => {
  const page = text(await openDashboard(checkout({ 'src/ui/main.tsx': '' }))(), 'index.html')
  assert.not.match(page, /<script(?![^>]* src=)|<style|style=|\son\w+=/)
})

dashboards('are read from dist, and bundled again when a source is newer', async () => {
  const dir = checkout({ 'src/ui/main.tsx': 'console.log("old")' })
  await writeDashboard(dir, join(dir, 'dist/ui'))
  const [asset = ''] = readdirSync(join(dir, 'dist/ui/assets')).filter((name) => name.endsWith('.js'))
  writeFileSync(join(dir, 'dist/ui/assets', asset), 'console.log("of dist")')
  const read = openDashboard(dir, { lookEveryMs: 0 })
  assert.match(text(await read(), `assets/${asset}`), 'of dist')

  writeFileSync(join(dir, 'src/ui/main.tsx'), 'console.log("new")')
  const later = Date.now() / 1000 + 10
  utimesSync(join(dir, 'src/ui/main.tsx'), later, later)
  const dashboard = await read()
  assert.match(text(dashboard, loadedBy(dashboard)[0] ?? ''), 'console.log("new")')
})

dashboards('are requested many times with one look at the sources', async () => {
  const read = openDashboard(checkout({ 'src/ui/main.tsx': 'console.log("one")' }))
  await read()
  const requests = Array.from({ length: 100 }, read)
  const looks = process.getActiveResourcesInfo().filter((name) => name === 'FSReqPromise').length
  assert.ok(looks <= 1, `${looks} looks`)
  assert.is(new Set(await Promise.all(requests)).size, 1)
})

dashboards('are read from dist where there are no sources', async () => {
  const from = checkout({ 'src/ui/main.tsx': 'console.log("built")' })
  const installed = tempDir()
  await writeDashboard(from, join(installed, 'dist/ui'))
  const dashboard = await openDashboard(installed)()
  assert.match(text(dashboard, loadedBy(dashboard)[0] ?? ''), 'built')
  assert.not.ok([...dashboard.keys()].some((path) => path.endsWith('.br')))
  assert.ok(readFileSync(join(installed, 'dist/ui/index.html.br')).length > 0)
})

dashboards('are unavailable while a source is wrong, and are tried again', async () => {
  const dir = checkout({ 'src/ui/main.tsx': 'const = 1' })
  const read = openDashboard(dir, { lookEveryMs: 0 })
  const failure = await read().catch((error: unknown) => error)
  assert.ok(isAppError(failure, 'unavailable'))
  assert.match((failure as Error).message, 'npm run prepare')
  write(dir, { 'src/ui/main.tsx': 'console.log("repaired")' })
  const dashboard = await read()
  assert.match(text(dashboard, loadedBy(dashboard)[0] ?? ''), 'repaired')
})

dashboards.run()
