import * as assert from 'uvu/assert'
import { openWorkbench } from '../sandbox/harness.ts'
import { suite } from '../support/suite.ts'
import { inspectionOf, messageOf } from './inspection.ts'

const load = suite('a build that does not load')

const mistakes: [string, Record<string, string>, string][] = [
  [
    'a syntax error in JavaScript',
    { 'a/b.js': 'export const x = 1\nexport const = 2' },
    "a/b.js:2: Unexpected token '='",
  ],
  ['a syntax error in TypeScript', { 'a/b.ts': 'const x: number = 1\n\nexport const = 2' }, 'a/b.ts:3: '],
  ['TypeScript that is more than types', { 'a.ts': 'export const x = 1\nenum Color { Red }' }, 'a.ts:2: '],
  [
    'a module that throws',
    { 'a.ts': 'type T = 1\nexport const f = () => 1\nthrow new Error("no luck")' },
    'a.ts:3: no luck',
  ],
  [
    'a module that throws further in',
    { 'a.js': 'import "./lib/b.js"', 'lib/b.js': '\nnull.x' },
    'lib/b.js:2: ',
  ],
  ['a module that throws a string', { 'a.js': 'throw "bare"' }, 'a.js: Threw bare'],
  [
    'a missing file',
    { 'a.js': '\nimport { x } from "./nowhere.js"' },
    "a.js:2: Cannot find module './nowhere.js'",
  ],
  ['a missing package', { 'a.js': "import _ from 'lodash'" }, "a.js:1: Cannot find module 'lodash'"],
  [
    'a missing export',
    { 'a.js': '\n\nimport { y } from "./b.js"', 'b.js': 'export const x = 1' },
    'a.js:3: ',
  ],
  [
    'a module that exits',
    { 'a.js': 'export const f = 1', 'b.js': 'process.exit(0)' },
    'b.js: The process of the function exited with code 0 while it was loading',
  ],
  [
    'an SDK call while loading',
    { 'a.js': "import { emit } from 'svc'\nawait emit('x', 1)" },
    'a.js:2: Expected emit() to be called inside a run',
  ],
  [
    'two files of one namespace',
    { 'a.js': '', 'a.ts': '' },
    'a.ts: Expected a unique namespace, got a, which a.js has too',
  ],
]
for (const [what, files, message] of mistakes) {
  load(`names file and line: ${what}`, async () => {
    const got = await messageOf(files)
    assert.ok(got.startsWith(message), `Expected ${message}, got ${got}`)
    assert.not.match(got, '/tmp')
  })
}

const likely: [what: string, files: Record<string, string>, message: string][] = [
  [
    'a file without its extension',
    { 'a.ts': "import { x } from './lib/b'", 'lib/b.ts': 'export const x = 1' },
    "a.ts:1: Cannot find module './lib/b': did you mean './lib/b.ts'?",
  ],
  [
    'a TypeScript file by the name of its JavaScript',
    { 'a.ts': "import { x } from './_b.js'", '_b.ts': 'export const x = 1' },
    "a.ts:1: Cannot find module './_b.js': did you mean './_b.ts'?",
  ],
  [
    'a misspelt file',
    { 'a.ts': "import { x } from './_pricse.ts'", '_prices.ts': 'export const x = 1' },
    "a.ts:1: Cannot find module './_pricse.ts': did you mean './_prices.ts'?",
  ],
  [
    'a folder with an index',
    { 'a.ts': "import { x } from './_lib'", '_lib/index.ts': 'export const x = 1' },
    "a.ts:1: Cannot find module './_lib': did you mean './_lib/index.ts'?",
  ],
  [
    'a package that is missing',
    { 'a.ts': "import { z } from 'zod'" },
    "a.ts:1: Cannot find module 'zod': bundle the package zod, or add node_modules/zod to the build",
  ],
  [
    'a path that a package of the build does not export',
    {
      'a.ts': "import { z } from 'zod/other'",
      'node_modules/zod/package.json': '{"name": "zod", "exports": {".": "./index.js"}}',
      'node_modules/zod/index.js': 'module.exports = 1',
    },
    "a.ts:1: Cannot find module 'zod/other': the package zod is in the build, and does not export this path",
  ],
  [
    'a package of the build without a module',
    { 'a.ts': "import { z } from 'zod'", 'node_modules/zod/package.json': '{"name": "zod"}' },
    "a.ts:1: Cannot find module 'zod': node_modules/zod has no module that can be imported by this name",
  ],
  [
    'the client of svc, which is not bundled',
    { 'a.ts': "import { createClient } from 'svc/client'" },
    "a.ts:1: Cannot find module 'svc/client': bundle the module svc/client",
  ],
  [
    'a module of svc for tests',
    { 'a.ts': "import { testRun } from 'svc/test'" },
    "a.ts:1: Cannot find module 'svc/test': functions import svc, and svc/client if the build is bundled",
  ],
  [
    'the permission to start a thread',
    { 'a.ts': "import { Worker } from 'node:worker_threads'\nnew Worker('x', { eval: true })" },
    'a.ts:2: A function cannot use WorkerThreads',
  ],
  [
    'a misspelt package',
    { 'a.ts': "import x from 'strpie'", 'node_modules/stripe/index.js': 'module.exports = 1' },
    "a.ts:1: Cannot find module 'strpie': did you mean 'stripe'?",
  ],
  [
    'a path of tsconfig.json',
    { 'a.ts': "import x from '@/lib/x'" },
    "a.ts:1: Cannot find module '@/lib/x': paths of tsconfig.json are not applied; bundle the build, or import a relative path",
  ],
  [
    'a misspelt function of svc',
    { 'a.ts': "import { emmit } from 'svc'" },
    "a.ts:1: The requested module 'svc' does not provide an export named 'emmit': did you mean 'emit'?",
  ],
  [
    'a misspelt function of Node',
    { 'a.ts': "\nimport { readFilSync } from 'node:fs'" },
    "a.ts:2: The requested module 'node:fs' does not provide an export named 'readFilSync': did you mean 'readFileSync'?",
  ],
  [
    'a misspelt export of the build',
    {
      'a.ts': "import { totla } from './_b.ts'",
      '_b.ts': 'export const other = 1, y = 2\nexport async function total(): Promise<void> {}',
    },
    "a.ts:1: The requested module './_b.ts' does not provide an export named 'totla': did you mean 'total'?",
  ],
  [
    'a missing default export',
    { 'a.ts': "import b from './_b.ts'", '_b.ts': 'const x = 1\nexport { x as total }' },
    "a.ts:1: The requested module './_b.ts' does not provide an export named 'default': it has no default export, only total",
  ],
]
for (const [what, files, message] of likely) {
  load(`names what was probably meant: ${what}`, async () => assert.is(await messageOf(files), message))
}

load('names nothing outside of the build', async () => {
  const outside = { 'a.ts': "import x from '../../../etc/passwd'" }
  assert.is(
    await messageOf(outside),
    "a.ts:1: Cannot find module '../../../etc/passwd': the file is not in the build",
  )
})

load('names the file that spins', async () => {
  assert.match(
    await messageOf({ 'a.js': 'for (;;) {}' }, 5000), // a slow machine needs seconds until it loads the file
    'a.js: Expected it to load within 5000 ms; a loop',
  )
})

const awaiting: readonly [string, Record<string, string>, string][] = [
  ['in a module', { 'a.js': '\nawait new Promise(() => {})' }, 'a.js:2'],
  [
    'of TypeScript',
    { 'a.ts': 'const later = async () => await 1\nexport const db: unknown = await new Promise(() => {})' },
    'a.ts:2',
  ],
  [
    'in a module that others import',
    {
      'a.js': "import './_c.js'\nimport { db } from './_b.js'\nexport const f = () => db\nawait 1",
      '_b.js': 'export const db = await new Promise(() => {})',
      '_c.js': "import './_b.js'\nawait 2",
    },
    '_b.js:1',
  ],
  ['in a block', { 'a.js': 'try {\n  await new Promise(() => {})\n} catch {}' }, 'a.js'],
]
const WITHIN_MS = 2000
/** The service ends a child at the limit of which the child reports 90 %. A machine that stalls in between needs longer. */
const withoutLimit = async <T>(work: () => Promise<T>): Promise<T> => {
  const { setTimeout } = globalThis
  const longer = (...[callback, ms, ...args]: Parameters<typeof setTimeout>) =>
    setTimeout(callback, ms === WITHIN_MS ? 10 * WITHIN_MS : ms, ...args)
  globalThis.setTimeout = Object.assign(longer, setTimeout)
  try {
    return await work()
  } finally {
    globalThis.setTimeout = setTimeout
  }
}
for (const [where, files, site] of awaiting)
  load(`names the top-level await that does not end: ${where}`, async () =>
    assert.is(
      await withoutLimit(() => messageOf(files, WITHIN_MS)),
      `${site}: Expected the top-level await to end, but it still waits after 1.8 s`,
    ),
  )

load('waits for a top-level await that ends', async () => {
  const source =
    "import { setTimeout } from 'node:timers/promises'\nawait setTimeout(200)\nexport const f = () => 1"
  const { ok } = await inspectionOf({ 'a.js': source })
  assert.ok(ok)
})

load('reports the same message when one of its functions is run', async () => {
  const { failure, runtime } = await openWorkbench({
    'a.ts': 'export const f = () => 1\nthrow new Error("at load")',
    'b.ts': 'export const = 1',
  })
  assert.equal(await failure('a/f'), {
    code: 'load_failed',
    message: 'a.ts:2: at load',
    location: { file: 'a.ts', line: 2, column: 7, snippet: 'throw new Error("at load")' },
  })
  const { code, message, location } = await failure('b/f')
  assert.is(code, 'load_failed')
  assert.match(message, /^b\.ts:1: /)
  assert.equal([location?.file, location?.line, location?.snippet], ['b.ts', 1, 'export const = 1'])
  await runtime.close()
})

load.run()
