import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import * as assert from 'uvu/assert'
import { install, npmPack, unpacked } from '../support/installed.ts'
import { runIn } from '../support/example.ts'
import { EMBEDDED } from '../support/installation.ts'
import { launch, type Launched } from '../support/launch.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

const folder = new URL('../../docs/guides/', import.meta.url)
/** The guide of streaming needs a browser, so it has a test of its own. */
const pages = readdirSync(folder).filter((page) => page !== 'streaming-to-a-browser.md')

interface Block {
  readonly kind: string
  readonly text: string
}

const blocksOf = (page: string): Block[] =>
  [...readFileSync(new URL(page, folder), 'utf8').matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(
    ([, kind = '', text = '']) => ({ kind, text }),
  )

/** A pattern for a line of shown output, in which `…` replaces any text. */
const patternOf = (line: string): RegExp =>
  new RegExp(
    line
      .split('…')
      .map(RegExp.escape)
      .join('.*')
      .replaceAll(/(?:\\x20| )+/g, ' +'),
  )

const guides = suite<{ modules: string }>('the guides work as written:', { timeoutMs: 180_000 })

guides.before(async (context) => {
  context.modules = join(await install(await unpacked(await npmPack()), tempDir()), 'node_modules')
})

for (const page of pages)
  guides(page, async ({ modules }) => {
    const cwd = tempDir()
    writeFileSync(join(cwd, 'package.json'), '{"name":"guide"}')
    symlinkSync(modules, join(cwd, 'node_modules'))
    const PATH = [join(cwd, 'node_modules/.bin'), process.env['PATH']].join(delimiter)
    const env = { ...EMBEDDED, HOME: tempDir(), PATH, PORT: '0' }
    const shell = (command: string) => runIn(cwd, 'bash', ['-c', `set -e\n${command}`], env)
    if (page !== 'first-function.md') assert.is((await shell('svc init')).code, 0)
    let dev: Launched | null = null
    let last = { code: 0, out: '' }
    try {
      const blocks = blocksOf(page)
      for (const [index, { kind, text }] of blocks.entries()) {
        if (kind === 'ts' || kind === 'js') {
          const [, path = '', code = ''] = /^\/\/ (\S+)\n(.*)$/s.exec(text) ?? []
          mkdirSync(dirname(join(cwd, path)), { recursive: true })
          writeFileSync(join(cwd, path), code)
        } else if (kind === 'sh') {
          // Tests need no registry: the package and its dependencies are installed already.
          const commands = text.replaceAll(/^npm i .*\n/gm, '')
          last = await shell(commands.replace(/^npx svc dev\n/m, ''))
          if (blocks[index + 1]?.kind !== 'text') assert.is(last.code, 0, `${text}${last.out}`)
          if (commands.includes('npx svc dev\n'))
            dev = await launch(['svc', 'dev'], { cwd, env, ready: /npx svc runs/ })
        } else if (kind === 'text') {
          for (const line of text.split('\n').filter(Boolean))
            assert.match(last.out, patternOf(line), last.out)
        } else assert.unreachable(`a block of ${kind}`)
      }
      const { code, out } = await shell('tsc -p .')
      assert.equal([code, out], [0, ''])
    } finally {
      await dev?.stop()
    }
  })

guides('have no block that a test does not read', () => {
  for (const page of pages) {
    const fences = readFileSync(new URL(page, folder), 'utf8').match(/^[ >]*(```|~~~)/gm) ?? []
    assert.is(fences.length, 2 * blocksOf(page).length, page)
  }
})

guides('are linked from the first one', () => {
  const first = readFileSync(new URL('first-function.md', folder), 'utf8')
  for (const page of readdirSync(folder))
    assert.ok(page === 'first-function.md' || first.includes(`(${page})`), page)
})

guides.run()
