import * as assert from 'uvu/assert'
import { deploy, ended, type Run } from '../support/build.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'

const server = await startServer({ env: { SVC_WEBHOOK_TIMEOUT_MS: '120000' } }) // a busy machine starts a process slowly
const { api } = server
await deploy(api, 'lab', {
  'm.ts': `export const add = (a: number, b: number) => a + b`,
})

const evaluate = (code: string): Promise<Run> => api.post('/projects/lab/eval', { code })

/** The service ends it after its time and a grace of 5 s, while the other tests run. */
const impatient = await startServer({ env: { SVC_WEBHOOK_TIMEOUT_MS: '1000' } })
await deploy(impatient.api, 'hangs', { 'h.js': 'export const f = () => 1' })
const hanging = impatient.api.post<Run>('/projects/hangs/eval', { code: 'await new Promise(() => {})' })

const evaluating = suite('evaluating code', { timeoutMs: 60_000 })

evaluating('replies 201 with the run, which has ended', async () => {
  const { status, json } = await api.send('POST', '/projects/lab/eval', { body: { code: '1 + 2' } })
  const { data } = json as { data: Run }
  assert.is(status, 201)
  assert.equal(
    [data.run_type, data.status, data.result, data.fn, data.project_name],
    ['eval', 'succeeded', 3, null, 'lab'],
  )
  assert.ok(data.stop_time)
  assert.equal(await api.get(`/runs/${data.run_id}`), data)
})

const values: [code: string, result: unknown][] = [
  ['undefined', null],
  ['({ a: [1, "ü"] })', { a: [1, 'ü'] }],
  ['await Promise.resolve(7)', 7],
  ['const n = 3; n * 2', 6],
  ['const n: number = 3; n as number', 3],
  [`'é'.repeat(50_000)`, 'é'.repeat(50_000)],
]
for (const [code, result] of values) {
  evaluating(`returns the value of the last expression: ${code}`, async () => {
    const run = await evaluate(code)
    assert.equal([run.status, run.result], ['succeeded', result], JSON.stringify(run.error))
  })
}

evaluating('may use the functions of the build, and the SDK', async () => {
  assert.is((await evaluate(`await run('m/add', 1, 2)`)).result, 3)
})

const failing: [code: string, expected: RegExp][] = [
  [`throw new Error('no')`, /^no$/],
  ['const = 1', /./],
  ['unknownName', /unknownName/],
]
for (const [code, expected] of failing) {
  evaluating(`reports a failure in the run: ${code}`, async () => {
    const run = await evaluate(code)
    assert.is(run.status, 'failed')
    assert.match(run.error?.message ?? '', expected)
    assert.equal(run.result, { error: run.error })
  })
}

evaluating('keeps no state between evaluations', async () => {
  await evaluate('globalThis.kept = 1; const own = 2')
  assert.is((await evaluate('typeof own')).result, 'undefined')
})

for (const body of [
  {},
  { code: '' },
  { code: 7 },
  { code: 'x'.repeat((256 << 10) + 1) },
  { code: '1', repl_id: '' },
  { code: '1', repl_id: 'a b' },
  { code: '1', repl_id: 7 },
]) {
  evaluating(`refuses ${JSON.stringify(body).slice(0, 40)}`, async () => {
    const { status, message } = await api.refused('POST', '/projects/lab/eval', body)
    assert.is(status, 400)
    assert.match(message, /^(code|repl_id): /)
  })
}

evaluating('needs a build', async () => {
  await api.post('/projects', { name: 'empty' })
  const { status, code, message } = await api.refused('POST', '/projects/empty/eval', { code: '1' })
  assert.equal([status, code], [404, 'not_found'])
  assert.match(message, 'no live or deployed build')
})

evaluating('ends the request after its timeout', async () => {
  const { run_id } = await hanging
  const { status, error } = await ended(impatient.api, run_id) // the reply does not wait for a run that starts late
  assert.equal([status, error?.code], ['failed', 'timeout'])
})

evaluating.after(() => Promise.all([server.stop(), impatient.stop()]))
evaluating.run()
