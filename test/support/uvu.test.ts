import { execFile } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import * as assert from 'uvu/assert'
import { suite } from './suite.ts'
import { tempDir } from './tempDir.ts'

const runner = fileURLToPath(new URL('uvu.ts', import.meta.url))
const start = `
import * as assert from ${JSON.stringify(import.meta.resolve('uvu/assert'))}
import { suite } from ${JSON.stringify(import.meta.resolve('./suite.ts'))}
const it = suite('it', { timeoutMs: 300 })
`

/** Runs the runner over test files of these contents, as `npm test` would in a project of their own. */
const run = (files: Record<string, string>, ...args: string[]) =>
  new Promise<{ code: number; output: string; last: string }>((resolve) => {
    const cwd = tempDir()
    for (const [name, body] of Object.entries(files)) {
      const file = join(cwd, 'test', name)
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, start + body)
    }
    const { NODE_COMPILE_CACHE } = process.env
    const env = {
      SVC_TEST_MONGODB: 'mongodb://user:secret@127.0.0.1:1',
      ...(NODE_COMPILE_CACHE !== undefined && { NODE_COMPILE_CACHE }),
    }
    execFile(process.execPath, [runner, ...args], { cwd, env }, (error, stdout, stderr) => {
      const output = stdout + stderr
      resolve({
        code: error ? Number(error.code) : 0,
        output,
        last: stdout.trimEnd().split('\n').at(-1) ?? '',
      })
    })
  })

/** Long enough for a file that ends as it should on a machine that stalls. */
const LINGER = '--linger-ms=3000'

const fails = async (body: string, last: string, told: RegExp, ...args: string[]) => {
  const files = { 'a.test.ts': body, 'good.test.ts': `it('passes', () => {})\nit.run()` }
  const result = await run(files, ...args)
  assert.is(result.last, last)
  assert.is(result.code, 1)
  assert.match(result.output, told)
  assert.match(result.output, /^ok {4}test\/good\.test\.ts {2}1 passed/m)
}

const runs = suite('npm test')

runs('counts tests over files, one line each', async () => {
  const two = `it('one', () => {})\nit('two', async () => {})\nit.skip('three', () => {})\nit.run()`
  const { code, output, last } = await run({
    'a.test.ts': two,
    'deep/er/b.test.ts': two,
    'not.ts': 'throw 1',
  })
  assert.is(last, '4 passed, 0 failed')
  assert.is(code, 0)
  assert.match(output, /^ok {4}test\/a\.test\.ts {2}2 passed, 1 skipped {2}\d+ ms$/m)
  assert.match(output, /^ok {4}test\/deep\/er\/b\.test\.ts {2}2 passed/m)
})

runs('passes a file whose tests are all skipped, and counts them', async () => {
  const { code, output, last } = await run({
    'a.test.ts': `it.skip('one', () => {})\nit.run()`,
    'b.test.ts': `it('two', () => {})\nit.run()`,
  })
  assert.is(last, '1 passed, 0 failed')
  assert.is(code, 0)
  assert.match(output, /^ok {4}test\/a\.test\.ts {2}0 passed, 1 skipped/m)
})

runs('fails a file that awaits something between two suites', async () => {
  const late = "const late = suite('late')\nlate('passes', () => {})\nlate.run()"
  const pause = 'await new Promise((resolve) => setTimeout(resolve, 50))'
  await fails(
    `it('passes', () => {})\nit.run()\n${pause}\n${late}`,
    '2 passed, 1 failed',
    /Expected \.run\(\) of "late" before the first test/,
  )
})

runs('repeats failed tests and their errors at the end', async () => {
  const { output } = await run({
    'a.test.ts': `it('fails', () => { throw new Error('torn') })\nit('passes', () => {})\nit.run()`,
    'b.test.ts': `it('passes', () => {})\nit.run()`,
  })
  assert.match(output, /^failures:\ntest\/a\.test\.ts\n {2}it {2}"fails"\n {4}torn\nengines:/m)
})

/** A file whose test fails until it has run `times` times. */
const failsFirst = (times: number) => `import { appendFileSync, readFileSync } from 'node:fs'
  it('is unsteady', () => {
    appendFileSync('runs', '.')
    assert.ok(readFileSync('runs').length > ${times}, 'not yet')
  })\nit.run()`

runs('runs a failing file a second time with --retry, and reports it', async () => {
  const { code, output, last } = await run({ 'a.test.ts': failsFirst(1) }, '--retry')
  assert.is(last, '1 passed, 0 failed')
  assert.is(code, 0)
  assert.match(output, /^FAIL {2}test\/a\.test\.ts/m)
  assert.match(
    output,
    /^UNSTEADY, [^\n]*:\ntest\/a\.test\.ts\n {2}it {2}"is unsteady"\n {4}not yet\b.*\nengines:/m,
  )
})

runs('fails a file that fails twice with --retry, or once without', async () => {
  await fails(failsFirst(2), '1 passed, 1 failed', /^failures:\ntest\/a\.test\.ts/m, '--retry')
  await fails(failsFirst(1), '1 passed, 1 failed', /^failures:\ntest\/a\.test\.ts/m)
})

runs('does not run again what fails in many files', async () => {
  const files = Array.from({ length: 9 }, (_, n) => [
    `${n}.test.ts`,
    `it('fails', () => assert.unreachable())\nit.run()`,
  ])
  const { last, output } = await run(Object.fromEntries(files), '--retry')
  assert.is(last, '0 passed, 9 failed')
  assert.is(output.match(/^FAIL /gm)?.length, 9)
})

runs('reports the exercised engines before the last line', async () => {
  const asks = `import { engineUrl, reportExercised } from ${JSON.stringify(import.meta.resolve('./engines.ts'))}\n`
  const { output, last } = await run({
    'a.test.ts': `${asks}it('a', () => assert.match(engineUrl('mongodb'), '127.0.0.1'))\nit.run()`,
    'b.test.ts': `${asks}it('b', () => { assert.is(engineUrl('redis'), null); reportExercised('a stand-in') })\nit.run()`,
  })
  assert.is(last, '2 passed, 0 failed')
  assert.match(
    output,
    /\nengines: MongoDB, a stand-in exercised; EventStoreDB, Redis, S3 not \(set [^)]*\)\n2 passed, 0 failed\n$/,
  )
  assert.not.match(output, 'secret')
})

runs('runs only the files that match', async () => {
  const one = `it('one', () => {})\nit.run()`
  const { code, last } = await run(
    { 'a.test.ts': one, 'b.test.ts': one, 'c.test.ts': 'throw 1' },
    'a.t',
    'b.t',
  )
  assert.is(last, '2 passed, 0 failed')
  assert.is(code, 0)
})

runs('names the files that do not run again for lack of time', async () => {
  const { code, output, last } = await run(
    { 'api/a.test.ts': `it('passes', () => {})\nit.run()` },
    '--minutes=0',
  )
  assert.is(last, '1 passed, 0 failed')
  assert.is(code, 0)
  assert.match(output, /^NOT EXERCISED for lack of time: test\/api\/a\.test\.ts \(on real engines\)$/m)
})

runs('fails when nothing matches', async () => {
  const { code, last } = await run({ 'a.test.ts': `it('one', () => {})\nit.run()` }, 'nothing')
  assert.is(last, '0 passed, 1 failed')
  assert.is(code, 1)
})

runs('shows the output of a failing file', () =>
  fails(
    `it('one', () => {})\nit('two', () => { console.log('seen'); assert.is(1, 2) })\nit.run()`,
    '2 passed, 1 failed',
    /seen[^]*"two"/,
  ),
)

runs('fails every test when before throws', () =>
  fails(
    `it.before(() => { throw new Error('no engine') })\nit('one', () => {})\nit('two', () => {})\nit.run()`,
    '1 passed, 2 failed',
    /before: no engine/,
  ),
)

runs('fails a test when before.each throws', () =>
  fails(
    `it.before.each(() => { throw new Error('torn') })\nit('one', () => {})\nit.run()`,
    '1 passed, 1 failed',
    /torn/,
  ),
)

runs('fails a test when after.each throws, and keeps its own failure', async () => {
  const torn = `it.after.each(() => { throw new Error('torn') })\n`
  await fails(`${torn}it('one', () => {})\nit.run()`, '1 passed, 1 failed', /after\.each: torn/)
  await fails(`${torn}it('one', () => { throw new Error('mine') })\nit.run()`, '1 passed, 1 failed', /mine/)
})

runs('fails the last test when after throws', () =>
  fails(
    `it.after(() => { throw new Error('stuck') })\nit('one', () => {})\nit('two', () => {})\nit.run()`,
    '2 passed, 1 failed',
    /"two"[^]*after: stuck/,
  ),
)

runs('fails a test that throws a value that is not an error', () =>
  fails(
    `it('one', () => { throw undefined })\nit('two', () => {})\nit.run()`,
    '2 passed, 1 failed',
    /Thrown: undefined/,
  ),
)

runs('fails a test that hangs, by name', () =>
  fails(
    `it('hangs', () => new Promise(() => {}))\nit('two', () => {})\nit.run()`,
    '2 passed, 1 failed',
    /"hangs"[^]*within 900 ms/,
  ),
)

runs('fails a file whose suite is not run', async () => {
  await fails(`it('one', () => {})`, '1 passed, 1 failed', /missing on: it/)
  await fails(
    `const other = suite('other')\nother('one', () => {})\nit('one', () => {})\nit.run()`,
    '2 passed, 1 failed',
    /missing on: other/,
  )
})

runs('fails a suite without tests', () => fails(`it.run()`, '1 passed, 1 failed', /has tests/))

runs('fails a file that leaves a handle open', () =>
  fails(
    `it('one', () => { setInterval(() => {}, 1000) })\nit.run()`,
    '2 passed, 1 failed',
    /left a handle open/,
    LINGER,
  ),
)

runs('does not take a long removal of files at the end for an open handle', async () => {
  const removing = `process.on('exit', () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 4500))
    it('one', () => {})\nit.run()`
  const { output, code } = await run({ 'a.test.ts': removing }, LINGER)
  assert.is(code, 0, output)
})

runs('fails a file that leaves a child process running, and ends it', () =>
  fails(
    `import { spawn } from 'node:child_process'
    it('one', () => { spawn('sleep', ['30'], { stdio: 'inherit' }).unref() })\nit.run()`,
    '2 passed, 1 failed',
    /left a child process running/,
    LINGER,
  ),
)

runs('fails a file that exits in the middle of a test', async () => {
  await fails(
    `it('one', () => {})\nit('two', () => process.exit(0))\nit.run()`,
    '1 passed, 1 failed',
    /summary/,
  )
  await fails(
    `it('one', () => {})\nit('two', () => process.kill(process.pid, 'SIGKILL'))\nit.run()`,
    '1 passed, 1 failed',
    /summary/,
  )
})

runs('fails a file that breaks after its tests', () =>
  fails(
    `it('one', () => { setTimeout(() => { throw new Error('late') }, 200) })\nit.run()`,
    '2 passed, 1 failed',
    /late[^]*exited with code 1/,
  ),
)

runs('fails a file that does not load', () =>
  fails(`import './missing.ts'`, '1 passed, 1 failed', /ERR_MODULE_NOT_FOUND/),
)

runs('fails a file that takes too long', async () => {
  const { last, output } = await run({ 'a.test.ts': `for (;;) {}` }, '--timeout-ms=500')
  assert.is(last, '0 passed, 1 failed')
  assert.match(output, /within 500 ms/)
})

runs('fails a file that runs a part of its tests', () =>
  fails(`it.only('one', () => {})\nit('two', () => {})\nit.run()`, '2 passed, 1 failed', /no \.only/),
)

runs.run()
