import * as assert from 'uvu/assert'
import { suite } from '../support/suite.ts'
import { type Asked, openWorkbench, resultOf, type Workbench } from './harness.ts'

interface Context extends Workbench {
  readonly evaluate: (code: string, repl_id?: string, asked?: Asked) => Promise<unknown>
}

const evaluation = suite<Context>('evaluating code')

evaluation.before(async (context) => {
  const bench = await openWorkbench('ok', { heartbeatMs: 10_000 })
  const evaluate: Context['evaluate'] = (code, repl_id, asked) =>
    resultOf(bench.invoke(repl_id === undefined ? { code } : { code, repl_id }, asked))
  Object.assign(context, bench, { evaluate })
})
evaluation.after(({ runtime }) => runtime.close())

const values: [string, unknown][] = [
  ['1 + 1', 2],
  ['{ a: 1 }', { a: 1 }],
  ['const x: number = 3; x * 2', 6],
  ['await Promise.resolve("later")', 'later'],
  ['const y = await Promise.resolve(4)\ny + 1', 5],
  ['for (let n = 0; n < 3; n++) {}', null],
  ['undefined', null],
  ['interface Point { x: number }\n({ x: 1 } satisfies Point)', { x: 1 }],
  ["ns['orders.handlers'].add(2, 3)", 5],
  ["(await import('./orders/handlers.ts')).add(4, 5)", 9],
  ['{ let a = 1; a + 1 }', 2],
]
for (const [code, value] of values) {
  evaluation(`returns the value of the last expression: ${code}`, async ({ evaluate }) => {
    assert.equal(await evaluate(code), value)
  })
}

evaluation('has the SDK in scope', async ({ evaluate }) => {
  assert.is(await evaluate('currentRun().run_id', undefined, { run: { run_id: 'mine' } }), 'mine')
  const onHostCall = async () => 's3cret' // masked in results
  assert.is(await evaluate('(await context("KEY")).length', undefined, { onHostCall }), 6)
})

evaluation('keeps declarations for the same repl_id only', async ({ evaluate, invoke }) => {
  await evaluate(
    'const one = await Promise.resolve(1); let two = 2; function three() { return 3 }; class Four {}',
    'r1',
  )
  assert.equal(await evaluate('[one, two, three(), typeof Four]', 'r1'), [1, 2, 3, 'function'])
  await evaluate('two = 22', 'r1')
  assert.is(await evaluate('two', 'r1'), 22)
  assert.is(await evaluate('typeof one', 'r2'), 'undefined')
  assert.is(await evaluate('typeof one'), 'undefined')
  const missing = await invoke({ code: 'one', repl_id: 'r2' })
  assert.is(missing.status === 'failed' && missing.error.message, 'one is not defined')
})

const mistakes: [string, RegExp][] = [
  ['throw new TypeError("no")', /^no$/],
  ['await Promise.reject(new Error("later no"))', /^later no$/],
  ['1 +', /^eval:1: /],
  ['const a = 1\nconst = 2', /^eval:2: /],
  ['throw "text"', /^text$/],
  ['JSON.parse("{")', /JSON/],
]
for (const [code, message] of mistakes) {
  evaluation(`fails as a function does: ${code}`, async ({ invoke }) => {
    const outcome = await invoke({ code })
    assert.ok(outcome.status === 'failed', JSON.stringify(outcome))
    if (outcome.status !== 'failed') return
    assert.is(outcome.error.code, 'function_failed')
    assert.match(outcome.error.message, message)
    assert.not.match(outcome.error.stack ?? '', '/tmp')
  })
}

evaluation(
  'fails as unavailable with the error of an SDK call that an outage refused',
  async ({ invoke }) => {
    const away = Object.assign(new Error('The event store does not answer'), { code: 'unavailable' })
    const onHostCall = () => Promise.reject(away)
    const codeOf = async (code: string) => {
      const outcome = await invoke({ code }, { onHostCall })
      return outcome.status === 'failed' ? outcome.error.code : outcome.status
    }
    assert.is(await codeOf('await context("KEY")'), 'unavailable')
    assert.is(await codeOf('await context("KEY").catch(() => 1)'), 'succeeded')
    const own = 'throw Object.assign(new Error("mine"), { code: "unavailable" })'
    assert.is(await codeOf(own), 'function_failed')
  },
)

evaluation('captures its output', async ({ evaluate }) => {
  const lines: unknown[] = []
  await evaluate('console.log("hello")', undefined, { onLog: (line) => lines.push(line) })
  assert.equal(lines, [{ source: 'stdout', text: 'hello' }])
})

evaluation('keeps concurrent evaluations apart', async ({ evaluate, invoke }) => {
  const slow = evaluate('await new Promise((r) => setTimeout(r, 30)); currentRun().run_id', 'r3', {
    run: { run_id: 'slow' },
  })
  const failed = invoke({ code: 'throw new Error("mine alone")', repl_id: 'r3' })
  assert.is((await failed).status, 'failed')
  assert.is(await slow, 'slow')
})

evaluation.run()
