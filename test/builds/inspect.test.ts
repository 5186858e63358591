import * as assert from 'uvu/assert'
import type { Inspection } from '../../src/ports/runtime.ts'
import { suite } from '../support/suite.ts'
import { FORGE } from '../support/forge.ts'
import { openWorkbench } from '../sandbox/harness.ts'

const inspectionOf = async (
  source: string | Record<string, string>,
  inspectMs = 10_000,
): Promise<Inspection> => {
  const { runtime, inspect } = await openWorkbench(source, { inspectMs })
  try {
    return await inspect()
  } finally {
    await runtime.close()
  }
}

const messageOf = async (source: Record<string, string>, inspectMs?: number): Promise<string> => {
  const inspection = await inspectionOf(source, inspectMs)
  return inspection.ok ? `ok: ${JSON.stringify(inspection.functions)}` : inspection.message
}

/** Returns the message for one function with the metadata, without file and function. */
const mistakeIn = async (metadata: string): Promise<string> => {
  const message = await messageOf({
    'a.js': `import { fn } from 'svc'\nexport const f = fn(${metadata}, () => 1)`,
  })
  return message.replace(/^a\.js: f: /, '')
}

const inspecting = suite('inspecting a build')

inspecting('lists its functions with metadata and defaults, by ns and var', async () => {
  const inspection = await inspectionOf('ok')
  assert.ok(inspection.ok)
  const functions = inspection.ok ? inspection.functions : []
  assert.equal(
    functions.filter((spec) => Object.keys(spec).length > 2),
    [
      { ns: 'legacy', var: 'default', on_event: 'legacy' },
      {
        ns: 'orders.handlers',
        var: 'nightly',
        schedule: { cron: '0 3 * * *', timezone: 'Europe/Berlin' },
        timeout: 5000,
      },
      {
        ns: 'orders.handlers',
        var: 'onCreated',
        on_event: 'order:created',
        retry: { attempts: 3, delay: 1000 },
      },
      {
        ns: 'orders.handlers',
        var: 'paid',
        webhook: {
          service: 'stripe',
          path: '/paid',
          method: 'POST',
          name: 'orders.handlers_paid',
          description: '',
          auth: 'none',
        },
        secret_headers: ['x-key'],
      },
    ],
  )
  const refs = functions.map((spec) => `${spec.ns}/${spec.var}`)
  assert.equal(refs, refs.toSorted())
  assert.ok(refs.includes('orders.handlers/add'))
  assert.not.ok(refs.some((ref) => /_internal|NotAFunction|alsoNot/.test(ref)))
})

inspecting('ignores hidden files, node_modules and declarations', async () => {
  const source = 'export const f = () => 1'
  const files = [
    '_a.js',
    '.b.js',
    'x/_y/c.js',
    'x/.z/d.js',
    'node_modules/m/index.js',
    'e.d.ts',
    'f.cjs',
    'g.json',
    'yes/h.mts',
  ]
  const inspection = await inspectionOf(Object.fromEntries(files.map((file) => [file, source])))
  assert.equal(inspection, { ok: true, functions: [{ ns: 'yes.h', var: 'f' }], ignored: ['f.cjs'] })
})

inspecting('reports the files that look like modules and cannot be namespaces', async () => {
  const source = 'export const f = () => 1'
  const files = [
    'a.js',
    'page.tsx',
    'lib/old.cjs',
    'lib/x.cts',
    'view.jsx',
    '_shared/x.cjs',
    'node_modules/m/m.cjs',
  ]
  const inspection = await inspectionOf(Object.fromEntries(files.map((file) => [file, source])))
  assert.equal(inspection, {
    ok: true,
    functions: [{ ns: 'a', var: 'f' }],
    ignored: ['lib/old.cjs', 'lib/x.cts', 'page.tsx', 'view.jsx'],
  })
})

inspecting('warns about a folder that was zipped as a whole', async () => {
  const inspection = await inspectionOf({
    'my-app/package.json': '{}',
    'my-app/handlers.js': 'export const f = () => 1',
  })
  assert.equal(inspection, {
    ok: true,
    functions: [{ ns: 'my-app.handlers', var: 'f' }],
    warnings: [
      'All files are in the folder my-app, so each namespace begins with "my-app."; zip the content of the folder, not the folder itself',
    ],
  })
})

const MODULE_RULE =
  'Expected at least one exported function in a module (.js, .mjs, .ts, .mts) outside node_modules, in a path without names that begin with "_" or "."'
const withoutFunctions: [string, Record<string, string>, string][] = [
  ['other files', { 'README.md': 'hello', 'page.tsx': '' }, 'README.md, page.tsx'],
  [
    'modules that export no function',
    { 'a.js': 'export const n = 1', 'b.js': 'export default { fetch() {} }' },
    'a.js, b.js without an exported function',
  ],
  ['dependencies only', { 'node_modules/m/index.js': 'export const f = () => 1' }, 'no files'],
  [
    'more files than a message names',
    Object.fromEntries(Array.from({ length: 12 }, (_, n) => [`f${String(n).padStart(2, '0')}.md`, ''])),
    'f00.md, f01.md, f02.md, f03.md, f04.md, f05.md, f06.md, f07.md, f08.md, f09.md and 2 more',
  ],
]
for (const [what, files, found] of withoutFunctions) {
  inspecting(`refuses a build without functions and lists what it found: ${what}`, async () =>
    assert.is(await messageOf(files), `${MODULE_RULE}; found ${found}`),
  )
}

inspecting('loads dependencies from node_modules, CommonJS too', async () => {
  const files = {
    'node_modules/left/package.json': '{"main":"index.js"}',
    'node_modules/left/index.js': 'module.exports = { pad: () => 1 }',
    'a.ts': "import left from 'left'\nexport const { pad } = left as { pad(): number }",
  }
  assert.equal(await inspectionOf(files), { ok: true, functions: [{ ns: 'a', var: 'pad' }] })
})

inspecting.run()

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
  assert.is(await messageOf({ 'a.js': 'for (;;) {}' }, 500), 'a.js: Expected it to load within 500 ms')
})

load('names the file that never finishes', async () => {
  assert.is(
    await messageOf({ 'a.js': 'await new Promise(() => {})' }, 3000),
    'a.js: Expected it to load within 3000 ms',
  )
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

const metadata = suite('metadata')

const refusals: [string, string][] = [
  ['{ retry: 11 }', 'Expected retry to be a whole number from 0 to 10, got 11'],
  ['{ retry: { attempts: 1.5 } }', 'Expected retry.attempts to be a whole number from 0 to 10, got 1.5'],
  [
    '{ retry: { attempts: 1, delay: 3600001 } }',
    'Expected retry.delay to be a whole number from 0 to 3600000, got 3600001',
  ],
  ['{ retry: "often" }', 'Expected retry to be a number or {attempts, delay}, got "often"'],
  ['{ once: "yes" }', 'Expected once to be true or false, got "yes"'],
  ['{ Once: true }', 'Expected the key once, got Once'],
  ['{ "on-event": "" }', 'Expected on-event to be a string of 1 to 1024 characters, got ""'],
  [
    '{ onEvent: "order:*" }',
    'Expected on-event to be the exact type of an event, not a pattern, got "order:*"',
  ],
  [
    '{ onEvent: "svc:call" }',
    'Expected on-event not to begin with "svc:", which is for events that control runs, got "svc:call"',
  ],
  [
    '{ onEvent: "x".repeat(257) }',
    `Expected on-event to have at most 256 characters, got "${'x'.repeat(79)}`,
  ],
  [
    '{ schedule: "60 * * * *" }',
    'Expected schedule.cron to be a cron expression of five fields, or six that begin with the seconds, got "60 * * * *"',
  ],
  ['{ schedule: "0 0 30 2 *" }', 'Expected schedule.cron to match some day, got "0 0 30 2 *"'],
  [
    '{ schedule: "* * * * * * *" }',
    'Expected schedule.cron to be a cron expression of five fields, or six that begin with the seconds, got "* * * * * * *"',
  ],
  [
    '{ schedule: "60 0 3 * * *" }',
    'Expected schedule.cron to be a cron expression of five fields, or six that begin with the seconds, got "60 0 3 * * *"',
  ],
  [
    '{ schedule: { cron: "0 3 * * *", timezone: "Mars/Olympus" } }',
    'Expected schedule.timezone to be an IANA time zone, got "Mars/Olympus"',
  ],
  [
    '{ webhook: { path: "/x" } }',
    'Expected webhook.service to be a string of 1 to 1024 characters, got undefined',
  ],
  [
    '{ webhook: { service: "a b", path: "/x" } }',
    'Expected webhook.service to consist of letters, digits, "-", "_" and ".", got "a b"',
  ],
  [
    '{ webhook: { service: "a", path: "/../x" } }',
    'Expected webhook.path to be a URL path such as "/paid", got "/../x"',
  ],
  [
    '{ webhook: { service: "a", path: "/x", method: "TRACE" } }',
    'Expected webhook.method to be one of GET, PUT, PATCH, DELETE, POST, got "TRACE"',
  ],
  [
    '{ webhook: { service: "a", path: "/x", auth: "maybe" } }',
    'Expected webhook.auth to be "none" or "required", got "maybe"',
  ],
  ['{ "secret-headers": "x-key" }', 'Expected secret-headers to be a list of at most 100 names, got "x-key"'],
  ['{ secretHeaders: ["x key"] }', 'Expected each of secret-headers to be a header name, got "x key"'],
  ['{ context: "KEY" }', 'Expected context to be a list of at most 100 keys of context variables, got "KEY"'],
  [
    '{ context: ["../KEY"] }',
    'Expected each of context to be 1 to 128 letters, digits, "_", "." and "-", beginning with a letter or "_", got "../KEY"',
  ],
  ['{ Context: [] }', 'Expected the key context, got Context'],
  ['{ "on-events": "a" }', 'Expected the key on-event, got on-events'],
  ['{ event: "a" }', 'Expected the key on-event, got event'],
  ['{ retries: 3 }', 'Expected the key retry, got retries'],
  ['{ cron: "0 3 * * *" }', 'Expected the key schedule, got cron'],
  ['{ timeoutMs: 100 }', 'Expected the key timeout, got timeoutMs'],
  [
    '{ schedule: { cron: "0 3 * * *", tz: "Europe/Berlin" } }',
    'Expected the key schedule.timezone, got schedule.tz',
  ],
  [
    '{ schedule: { cron: "0 3 * * *", timeZone: "Europe/Berlin" } }',
    'Expected the key schedule.timezone, got schedule.timeZone',
  ],
  ['{ retry: { attempts: 1, backoff: 2 } }', 'Expected the key retry.delay, got retry.backoff'],
  ['{ retry: { attempt: 1 } }', 'Expected the key retry.attempts, got retry.attempt'],
  [
    '{ retry: { attempts: 1, jitter: true } }',
    'Expected one of the keys retry.attempts, retry.delay, got retry.jitter',
  ],
  ['{ webhook: { service: "a", paht: "/x" } }', 'Expected the key webhook.path, got webhook.paht'],
  [
    '{ team: "blue" }',
    'Expected one of the keys on-event, retry, once, schedule, webhook, secret-headers, timeout, context, or one of your own that begins with x-, got team',
  ],
  [
    '{ "on-event": "a", "x-filter": new Map() }',
    'Expected metadata that can be converted to JSON: metadata["x-filter"] is a Map; return Object.fromEntries(map)',
  ],
  ['{ timeout: 0 }', 'Expected timeout to be a whole number from 1 to 900000, got 0'],
  ['{ on_event: "x" }', 'Expected the key on-event, got on_event'],
  ['[1]', 'Expected metadata to be an object, got [1]'],
  ['{ onEvent: "a\\nb" }', 'Expected on-event to have no control character, got "a\\nb"'],
  [
    `{ webhook: { service: "a", path: "/x", description: "\\x1b[2J" } }`,
    'Expected webhook.description to have no control characters but line breaks and tabs, got "\\u001b[2J"',
  ],
]
for (const [given, message] of refusals) {
  metadata(`is refused: ${given}`, async () => assert.is(await mistakeIn(given), message))
}

metadata('may use camelCase, no retries, leap days and keys of the author', async () => {
  const given =
    '{ onEvent: "a", retry: { attempts: 0 }, schedule: "0 0 29 2 *", secretHeaders: ["X-A", "x-a"], "x-team": "blue" }'
  assert.is(
    await mistakeIn(given),
    `ok: ${JSON.stringify([
      {
        ns: 'a',
        var: 'f',
        on_event: 'a',
        retry: { attempts: 0, delay: 1000 },
        schedule: { cron: '0 0 29 2 *', timezone: 'UTC' },
        secret_headers: ['x-a'],
      },
    ])}`,
  )
})

metadata('keeps that a function starts once, and leaves out that it does not', async () => {
  assert.is(await mistakeIn('{ once: true }'), `ok: ${JSON.stringify([{ ns: 'a', var: 'f', once: true }])}`)
  assert.is(await mistakeIn('{ once: false }'), `ok: ${JSON.stringify([{ ns: 'a', var: 'f' }])}`)
})

metadata('keeps the keys of context variables, sorted and once, and an empty list too', async () => {
  assert.is(
    await mistakeIn('{ context: ["B", "A", "B"] }'),
    `ok: ${JSON.stringify([{ ns: 'a', var: 'f', context: ['A', 'B'] }])}`,
  )
  assert.is(await mistakeIn('{ context: [] }'), `ok: ${JSON.stringify([{ ns: 'a', var: 'f', context: [] }])}`)
})

metadata('refuses two webhooks at one address', async () => {
  const source =
    "import { fn } from 'svc'\nexport const f = fn({ webhook: { service: 's', path: 'p' } }, () => 1)"
  assert.is(
    await messageOf({ 'a.js': source, 'b.js': source }),
    'b/f: Expected a unique webhook, got POST s/p, which a/f has too',
  )
})

metadata('applies to each export of one handler', async () => {
  const source =
    "import { fn } from 'svc'\nconst h = () => 1\nexport const a = fn({ onEvent: 'a' }, h)\nexport const b = fn({ onEvent: 'b' }, h)"
  const inspection = await inspectionOf({ 'm.js': source })
  assert.equal(inspection, {
    ok: true,
    functions: [
      { ns: 'm', var: 'a', on_event: 'a' },
      { ns: 'm', var: 'b', on_event: 'b' },
    ],
  })
})

metadata.run()

const forging = (lines: string, inspectMs?: number) =>
  messageOf({ 'a.js': `${FORGE}\n${lines}`, 'b.js': 'export const g = () => 1' }, inspectMs)
const module = (file: string, functions: string, ns = 'x') =>
  `forge({ type: 'module', ns: '${ns}', file: '${file}', functions: ${functions} })`

const forged = suite('an inspection whose code writes to the service itself')

forged('has the namespaces of its files, whatever it writes', async () => {
  const lines = [
    module('a.js', "[{ var: 'ok' }]", '../../etc'),
    "forge({ type: 'loading', file: 'b.js' })",
    module('b.js', '[]'),
    "forge({ type: 'done' })",
    'await idle()',
  ]
  assert.is(await forging(lines.join('\n')), 'ok: [{"ns":"a","var":"ok"}]')
})

const violations: [string, string][] = [
  ['a file that the build does not have', module('../../etc/passwd', '[]')],
  ['a file twice', `${module('b.js', '[]')}\n${module('b.js', '[]')}`],
  ['the start of a file twice', "forge({ type: 'loading', file: 'a.js' })"],
  ['the end before every file', "forge({ type: 'done' })"],
  ['a second start', "forge({ type: 'ready' })"],
  ['a frame of a run', "forge({ type: 'result', id: 0, value: 1 })"],
]
for (const [what, lines] of violations) {
  forged(`is refused for ${what}`, async () =>
    assert.match(await forging(`${lines}\nawait idle()`), /^a\.js: Expected .* while it was loading$/),
  )
}

forged('is refused for a function that it reports twice', async () => {
  const lines =
    module('b.js', "[{ var: 'g' }, { var: 'g' }]") +
    "\nforge({ type: 'module', ns: '', file: 'a.js', functions: [] }, { type: 'done' })\nawait idle()"
  assert.is(await forging(lines), 'b/g: Expected a unique function, got it twice')
})

forged('is refused for names that no export can have, or metadata without end', async () => {
  const end =
    "\nforge({ type: 'module', ns: '', file: 'a.js', functions: [] }, { type: 'done' })\nawait idle()"
  assert.is(
    await forging(
      module('b.js', "[{ var: 'g\\u001b[2J' }, { var: 'x'.repeat(1000) }, { var: '../g' }]") + end,
    ),
    `${MODULE_RULE}; found a.js, b.js without an exported function`,
  )
  const long =
    "{ webhook: { service: 'a', path: '/' }, secretHeaders: Array.from({ length: 100 }, (_, i) => 'x'.repeat(100) + i) }"
  assert.match(
    await forging(module('b.js', `[{ var: 'g', metadata: ${long} }]`) + end),
    /^b\.js: g: Expected metadata of at most 8192 characters, got \d+$/,
  )
})

forged('is ended when it floods the service', async () => {
  assert.match(
    await forging(
      "const functions = [{ var: 'g', metadata: 'x'.repeat(7 << 20) }]\nfor (;;) forge({ type: 'module', ns: '', file: 'b.js', functions })",
    ),
    /^a\.js: Expected /,
  )
  assert.match(
    await forging(
      "const text = 'x'.repeat(100)\nfor (;;) forge({ type: 'log', id: 0, source: 'stdout', text })",
    ),
    /^a\.js: Expected a frame of a task, got log/,
  )
})

forged('cannot write control characters into the refusal', async () => {
  assert.is(
    await forging("forge({ type: 'done', error: 'a.js:1: \\x1b[2Jforged\\r\\x00' })\nawait idle()"),
    'a.js:1: \ufffd[2Jforged\ufffd\ufffd',
  )
})

forged('with thousands of schedules is refused, and the service answers meanwhile', async () => {
  const source = `import { fn } from 'svc'\n${Array.from({ length: 1001 }, (_, i) => `export const f${i} = fn({ schedule: '${i % 60} ${i % 24} ${1 + (i % 28)} 1 *' }, () => 1)`).join('\n')}`
  const { promise, resolve } = Promise.withResolvers<string>()
  let turns = 0
  const turn = setInterval(() => turns++, 1)
  void messageOf({ 'a.js': source }).then(resolve)
  assert.is(await promise, 'Expected at most 1000 schedules, got more')
  clearInterval(turn)
  assert.ok(turns > 20, `Expected turns of the event loop, got ${turns}`)
})

forged.run()
