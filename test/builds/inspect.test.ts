import * as assert from 'uvu/assert'
import { suite } from '../support/suite.ts'
import { inspectionOf, messageOf, MODULE_RULE } from './inspection.ts'

const inspecting = suite('inspecting a build')

inspecting('warns about functions within an object, which nothing can start', async () => {
  const worker = `import { fn } from 'svc'
    export default { fetch: async () => new Response('a'), other: () => 1 }
    export const tasks = { onPaid: fn({ 'on-event': 'paid' }, async () => 1), parse: () => 1, Kind: class {} }
    export const helpers = { fetch: () => 1 }`
  const warning =
    'b.ts: Expected each function to be an export of its own, found default.fetch, tasks.onPaid within an object, which nothing can start; ' +
    'a function with `webhook` in its metadata receives HTTP requests'
  const inspection = await inspectionOf({ 'a.ts': 'export const f = () => 1', 'b.ts': worker })
  assert.equal(inspection.ok && inspection.warnings, [warning])
  const message = await messageOf({ 'b.ts': worker })
  assert.is(message, `${MODULE_RULE}; found b.ts without an exported function; ${warning}`)
})

inspecting('warns about functions whose names no reference can have', async () => {
  const source = `const f = () => 1
    export { f, f as 'hello world', f as 'a/b', f as '💥', f as 'ünïcode' }`
  const inspection = await inspectionOf({ 'a.js': source })
  assert.equal(inspection.ok && inspection.functions.map((spec) => spec.var), ['f', 'ünïcode'])
  assert.equal(inspection.ok && inspection.warnings, [
    'a.js: Expected the name of each exported function to be an identifier of at most 128 characters, found "a/b", "hello world", "💥", which no reference can name',
  ])
})

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

for (const [what, code, message] of [
  ['a rejected promise', "Promise.reject(new Error('boom at load'))", 'm.js:2: boom at load'],
  ['a rejected text', "Promise.reject('boom')", 'with the reason "boom".'],
  ['an async function', "void (async () => { throw new TypeError('boom') })()", 'm.js:2: boom'],
  ['a microtask', "queueMicrotask(() => { throw new Error('boom') })", 'm.js:2: boom'],
  ['the next turn', "setImmediate(() => { throw new Error('boom') })", 'm.js:2: boom'],
] as const)
  inspecting(
    `refuses a module with an error without a catch in ${what}, each time and with its place`,
    async () => {
      const source = `export const f = () => 1\n${code}\n`
      for (let n = 0; n < 3; n++) assert.ok((await messageOf({ 'm.js': source })).endsWith(message))
    },
  )

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

const withoutFunctions: [string, Record<string, string>, string][] = [
  ['other files', { 'README.md': 'hello', 'page.tsx': '' }, 'README.md, page.tsx'],
  [
    'modules that export no function',
    { 'a.js': 'export const n = 1', 'b.js': 'export default { parse() {} }' },
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

inspecting(
  'refuses functions whose metadata needs too much memory together, although each may have its own',
  async () => {
    const input = `{ type: 'object', enum: Array.from({ length: 500 }, () => ({})) }`
    const many = Array.from(
      { length: 600 },
      (_, n) => `export const f${n} = fn({ mcp: { service: 's', description: 'd', input } }, () => 1)`,
    )
    const source = `import { fn } from 'svc'\nconst input = ${input}\n${many.join('\n')}`
    const allowed = await inspectionOf({ 'a.js': source })
    assert.is(allowed.ok && allowed.functions.length, 600)
    assert.is(
      (await messageOf({ 'a.js': source, 'b.js': source })).slice(0, 200),
      'b.js: Expected the lists, objects and values in the metadata of all functions to need at most 32 MiB of memory, got more while it was loading',
    )
  },
)

inspecting.run()
