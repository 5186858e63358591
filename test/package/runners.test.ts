/** A project that has the packed package installed tests its functions with the runners that people use. */
import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import * as assert from 'uvu/assert'
import { install, npmPack, unpacked } from '../support/installed.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

const functions = `
import { fn, run, send, type Event } from 'svc'
export const onCreated = fn({ 'on-event': 'order:created', retry: { attempts: 1, delay: 60_000 } }, async ({ data }: Event<{ id: number }>) => {
  const paid = await run<{ paid: boolean }>('payments/charge', data.id)
  await send('order:paid', { id: data.id })
  return paid
})
`
const payments = `
import { fn } from 'svc'
export const charge = (id: number) => ({ paid: id > 0 })
export const nightly = fn({ schedule: '0 3 * * *' }, ({ data }) => data.scheduled_time)
`

/** The two tests of the guide, with the functions of a runner. */
const tests = (runner: string, tail = ''): string => `
import assert from 'node:assert/strict'
import { test } from '${runner}'
import { startService, testRun } from 'svc/test'
import { onCreated } from '../src/orders.ts'

test('one function', async () => {
  const t = testRun({ calls: { 'payments/charge': () => ({ paid: true }) } })
  assert.deepEqual(await t.run(onCreated, { data: { id: 7 } }), { paid: true })
  assert.deepEqual(t.sent, [{ type: 'order:paid', data: { id: 7 } }])
})

test('the whole service', async () => {
  const service = await startService({ dir: '.', now: '2026-03-01T02:30:00Z' })
  try {
    const runs = await service.send('order:created', { id: 7 }).settled()
    assert.deepEqual(runs.map(({ fn, result }) => [fn, result]), [
      ['orders/onCreated', { paid: true }],
      ['payments/charge', { paid: true }],
    ])
    const [night] = await service.advance(3_600_000)
    assert.equal(night?.result, '2026-03-01T03:00:00.000Z')
  } finally {
    await service.stop()
  }
}, 60_000)
${tail}
`

interface Context {
  project: string
}

const runners = suite<Context>('svc/test in an installed package', { timeoutMs: 180_000 })

runners.before(async (context) => {
  const files = {
    'package.json': JSON.stringify({ name: 'shop', private: true, type: 'module' }),
    'src/orders.ts': functions,
    'src/payments.ts': payments,
    'test/node.test.ts': tests('node:test').replace('}, 60_000)', '})'),
    'test/uvu.ts': tests('uvu', 'test.run()').replace('}, 60_000)', '})'),
    'test/vitest.spec.ts': tests('vitest'),
    'test/broken.test.ts': tests('node:test')
      .replace('}, 60_000)', '})')
      .replace("type: 'order:paid'", "type: 'order:lost'"),
  }
  const dir = tempDir()
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(join(dir, path, '..'), { recursive: true })
    writeFileSync(join(dir, path), content)
  }
  context.project = await install(await unpacked(await npmPack()), dir)
})

const runIn = (
  cwd: string,
  ...args: readonly string[]
): Promise<{ readonly code: number; readonly out: string }> =>
  new Promise((resolve) => {
    execFile(process.execPath, [...args], { cwd, env: { PATH: process.env['PATH'] } }, (error, out, err) =>
      resolve({ code: error ? Number(error.code ?? -1) : 0, out: out + err }),
    )
  })

runners('works under node:test, and a wrong expectation fails', async ({ project }) => {
  const fine = await runIn(project, '--test', 'test/node.test.ts')
  assert.is(fine.code, 0, fine.out)
  assert.match(fine.out, /pass 2\b/)
  const broken = await runIn(project, '--test', '--test-name-pattern', 'one function', 'test/broken.test.ts')
  assert.is(broken.code, 1)
  assert.match(broken.out, 'order:lost')
})

runners('works under uvu', async ({ project }) => {
  const { code, out } = await runIn(project, 'node_modules/uvu/bin.js', 'test', 'uvu\\.ts$')
  assert.is(code, 0, out)
  assert.match(out, /Passed: +2\b/)
})

runners('works under vitest', async ({ project }) => {
  const { code, out } = await runIn(project, 'node_modules/vitest/vitest.mjs', 'run', 'test/vitest.spec.ts')
  assert.is(code, 0, out)
  assert.match(stripVTControlCharacters(out), /Tests +2 passed/)
})

/** Makes Node look older than it is. */
const olderNode = (version: string): string => {
  const code = `Object.defineProperty(process, "versions", { value: { ...process.versions, node: "${version}" } })`
  return `data:text/javascript,${encodeURIComponent(code)}`
}

runners('says which Node it needs, and where it is', async ({ project }) => {
  const where = 'npm installs it with svc; npm scripts and npx find it'
  const old = await runIn(project, '--import', olderNode('20.20.2'), '-e', "await import('svc/test')")
  assert.is(old.code, 1)
  assert.match(old.out, `svc/test: expected Node 22.15 or later, got 20.20.2; ${where}`)
  const code = `import { startService, testRun } from 'svc/test'
    console.log(await testRun().run((a, b) => a + b, 1, 2))
    await startService({ dir: '.' })`
  const middle = await runIn(project, '--import', olderNode('24.1.0'), '--input-type=module', '-e', code)
  assert.is(middle.code, 1)
  assert.match(middle.out, /^3\n/)
  assert.match(middle.out, `startService: expected Node 26.0 or later, got 24.1.0; ${where}`)
})

runners('loads nothing that an old Node refuses before it has said so', ({ project }) => {
  const importsOf = (file: string): readonly string[] =>
    [
      ...readFileSync(join(project, 'node_modules/svc/dist/testkit', file), 'utf8').matchAll(
        /^(?:import|export) .*from '([^']+)'/gm,
      ),
    ].map(([, specifier = '']) => specifier)
  assert.equal(importsOf('index.js'), ['node:module', './nodeVersion.js'])
  assert.equal(importsOf('nodeVersion.js'), [])
})

runners.run()
