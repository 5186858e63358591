import * as assert from 'uvu/assert'
import { FORGE } from '../support/forge.ts'
import { suite } from '../support/suite.ts'
import { messageOf, MODULE_RULE } from './inspection.ts'

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
    `${MODULE_RULE}; found a.js, b.js without an exported function; b.js: Expected the name of each exported function to be ` +
      `an identifier of at most 128 characters, found "../g", "g\\u001b[2J", "${'x'.repeat(60)}", which no reference can name`,
  )
  const long =
    "{ webhook: { service: 'a', path: '/' }, secretHeaders: Array.from({ length: 100 }, (_, i) => 'x'.repeat(100) + i) }"
  assert.match(
    await forging(module('b.js', `[{ var: 'g', metadata: ${long} }]`) + end),
    /^b\.js: g: Expected metadata of at most 8192 characters, got \d+$/,
  )
  const many =
    "{ mcp: { service: 'a', description: 'b', input: { type: 'object', enum: Array.from({ length: 2500 }, () => ({})) } } }"
  assert.is(
    await forging(module('b.js', `[{ var: 'g', metadata: ${many} }]`) + end),
    'b.js: g: Expected metadata of fewer lists, objects and values',
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
