import * as assert from 'uvu/assert'
import { deploy, handled, publish, type Run, runsOf } from '../support/build.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'

/** Each is a separate build, because a run that kills its process ends the other runs in it. */
const wrong: Record<
  string,
  {
    code: string
    status?: Run['status']
    error?: string
    orElse?: string
    message?: RegExp
    result?: unknown
  }
> = {
  throwsText: { code: `() => { throw 'just text' }`, error: 'function_failed', message: /^just text$/ },
  throwsNothing: { code: `() => { throw undefined }`, error: 'function_failed', message: /undefined/ },
  throwsObject: { code: `() => { throw { code: 7 } }`, error: 'function_failed', message: /code: 7/ },
  rejects: {
    code: `async () => { throw new RangeError('later') }`,
    error: 'function_failed',
    message: /^later$/,
  },
  inTimer: {
    code: `() => new Promise(() => setTimeout(() => { throw new Error('in a timer') }, 1))`,
    error: 'function_failed',
    message: /in a timer/,
  },
  bigint: { code: `() => ({ n: 10n })`, error: 'result_not_serializable', message: /BigInt/ },
  cycle: {
    code: `() => { const a = {}; a.a = a; return a }`,
    error: 'result_not_serializable',
    message: /circular/,
  },
  tooLarge: { code: `() => 'x'.repeat(8 << 20)`, error: 'result_too_large' },
  exits: { code: `() => process.exit(3)`, error: 'worker_lost', message: /exited with code 3/ },
  kills: { code: `() => process.kill(process.pid, 'SIGKILL')`, error: 'worker_lost', message: /SIGKILL/ },
  heap: {
    code: `() => { const a = []; for (;;) a.push(Array(30_000_000).fill({})) }`,
    error: 'worker_lost',
    message: /memory|answer a ping/, // its garbage collection may take longer than a busy machine may be silent
    orElse: 'unresponsive',
  },
  spins: { code: `() => { for (;;) {} }`, error: 'unresponsive' },
  spinsBriefly: { code: `fn({ timeout: 300 }, () => { for (;;) {} })`, error: 'timeout' },
  never: { code: `fn({ timeout: 300 }, () => new Promise(() => {}))`, error: 'timeout', message: /300 ms/ },
  deaf: {
    code: `fn({ timeout: 300 }, () => new Promise((done) => setTimeout(done, 60_000)))`,
    error: 'timeout',
  },
  garbage: {
    code: `() => { writeSync(3, '{not json}\\n'.repeat(9)); return new Promise(() => {}) }`,
    error: 'protocol_violation',
  },
  forges: {
    code: `() => { writeSync(3, frame({ type: 'result', id: 4_000_000, value: 'stolen' })); return new Promise(() => {}) }`,
    error: 'protocol_violation',
  },
  hangsUp: { code: `() => { closeSync(3); return new Promise(() => {}) }`, error: 'worker_lost' },
  floods: {
    code: `() => { for (let n = 0; n < 20_000; n++) console.log('x'.repeat(1000)); return 'flooded' }`,
    status: 'succeeded',
    result: 'flooded',
  },
  pollutes: {
    code: `() => { Object.prototype.status = 'cancelled'; Array.prototype.map = null; return 'polluted' }`,
    status: 'succeeded',
    result: 'polluted',
  },
  manyEmits: {
    code: `async () => { for (let n = 0; n < 500; n++) void emit('n', n); return 'emitted' }`,
    status: 'succeeded',
    result: 'emitted',
  },
}

const PREAMBLE = `import { closeSync, writeSync } from 'node:fs'
import { emit, fn } from 'svc'
const frame = (value) => { const body = Buffer.from(JSON.stringify(value)); const head = Buffer.alloc(4); head.writeUInt32BE(body.length); return Buffer.concat([head, body]) }
`

const server = await startServer()
const { api } = server
await deploy(api, 'healthy', { 'healthy.js': `export const ping = (n) => n` })

/** All start at once, so that the slow ones wait for their watchdogs at the same time. */
const started = new Map<string, string>()
const healthy: string[] = []

const code = suite('code that misbehaves', { timeoutMs: 120_000 })

code.before(async () => {
  for (const [name, { code }] of Object.entries(wrong))
    await deploy(api, name, { [`${name}.js`]: `${PREAMBLE}export const go = ${code}` })
  for (const name of Object.keys(wrong)) {
    started.set(name, (await publish(api, 'svc:call', { fn: `${name}/go` })).event_id)
    healthy.push((await publish(api, 'svc:call', { fn: 'healthy/ping', args: [healthy.length] })).event_id)
  }
})

for (const [name, expected] of Object.entries(wrong)) {
  const { status = 'failed', error, orElse = error, message, result } = expected
  code(`ends with a clear code: ${name}`, async () => {
    const [run] = (await handled(api, started.get(name) ?? '')) as [Run]
    const code = run.error?.code === orElse ? orElse : error
    assert.equal([run.status, run.error?.code], [status, code], JSON.stringify(run).slice(0, 500))
    if (message) assert.match(run.error?.message ?? '', message)
    if (error) assert.equal(run.result, { error: run.error })
    else assert.is(run.result, result)
  })
}

code('does not affect other runs', async () => {
  for (const [n, event_id] of healthy.entries()) assert.is((await handled(api, event_id))[0]?.result, n)
})

code('does not prevent later runs of its build', async () => {
  const { event_id } = await publish(api, 'svc:call', { fn: 'exits/go' })
  assert.is((await handled(api, event_id))[0]?.error?.code, 'worker_lost')
})

code('has its output in the logs of its run, up to a limit', async () => {
  const [{ run_id }] = (await runsOf(api, started.get('floods') ?? '')) as [Run]
  const { lines } = await api.get<{ lines: { text: string }[] }>(`/runs/${run_id}/logs`)
  assert.match(lines[0]?.text ?? '', 'xxx')
  assert.ok(JSON.stringify(lines).length < 512 << 10)
})

code.after(() => server.stop())
code.run()
