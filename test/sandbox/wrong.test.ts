import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { clock } from '../../src/clock.ts'
import { Intake } from '../../src/sandbox/intake.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { openWorkbench, resultOf, TIER, type Workbench } from './harness.ts'

const throwing = suite<Workbench>('a function that throws')

throwing.before(async (context) => void Object.assign(context, await openWorkbench('wrong')))
throwing.after(({ runtime }) => runtime.close())

throwing('fails with the message and a stack relative to the build', async ({ failure, cacheDir }) => {
  const { code, message, stack } = await failure('throws/error')
  assert.is(code, 'function_failed')
  assert.is(message, 'broken on purpose')
  assert.is(stack, 'TypeError: broken on purpose\n    at error (throws.ts:3:9)')
  assert.not.match(stack ?? '', cacheDir)
})

throwing('fails by rejecting', async ({ failure }) => {
  const { code, message, stack } = await failure('throws/rejects')
  assert.equal([code, message], ['function_failed', 'rejected on purpose'])
  assert.match(stack ?? '', /throws\.ts:6:\d+/)
})

const values: Record<string, string> = {
  string: 'just text',
  nullish: 'null',
  object: '{ code: 7 }',
  getter: 'Threw a value that cannot be shown',
}
for (const [name, message] of Object.entries(values)) {
  throwing(`may throw a value that is not an error: ${name}`, async ({ failure }) => {
    assert.equal(await failure(`throws/${name}`), { code: 'function_failed', message })
  })
}

throwing('fails when it throws in a timer', async ({ failure }) => {
  const { code, message } = await failure('throws/inTimer')
  assert.equal([code, message], ['function_failed', 'thrown in a timer'])
})

throwing('fails by an unhandled rejection', async ({ failure }) => {
  const { code, message } = await failure('throws/unhandled')
  assert.equal([code, message], ['function_failed', 'nobody listened'])
})

throwing('loses its process, but no other run, when it fails after its end', async ({ invoke }) => {
  const identity = await resultOf(invoke('dies/identity'))
  assert.is(await resultOf(invoke('throws/afterwards')), 'fine')
  await until(async () => (await resultOf(invoke('dies/identity'))) !== identity)
})

throwing.run()

const results = suite<Workbench>('a result')

results.before(async (context) => void Object.assign(context, await openWorkbench('wrong')))
results.after(({ runtime }) => runtime.close())

for (const name of ['bigint', 'cycle', 'toJson', 'deep', 'notANumber']) {
  results(`that cannot be JSON fails: ${name}`, async ({ failure }) => {
    const { code, message } = await failure(`results/${name}`)
    assert.is(code, 'result_not_serializable')
    assert.match(message, /^Expected a result that can be converted to JSON: ./)
  })
}

results('may have up to 6 MiB', async ({ failure, invoke }) => {
  assert.is((await failure('results/huge')).code, 'result_too_large')
  assert.is(((await resultOf(invoke('results/large'))) as string).length, 5 << 20)
})

results('may nest 1000 levels deep', async ({ failure, invoke }) => {
  const json = '['.repeat(1000) + ']'.repeat(1000)
  assert.is(JSON.stringify(await resultOf(invoke('results/nested', { args: [1000] }))), json)
  assert.is((await failure('results/nested', { args: [1001] })).code, 'result_not_serializable')
})

results('is its value as JSON', async ({ invoke }) => {
  assert.is(await resultOf(invoke('results/aFunction')), null)
  assert.equal(await resultOf(invoke('results/date')), { at: '1970-01-01T00:00:00.000Z' })
})

results.run()

const dying = suite<Workbench>('a function that kills its process')

dying.before(
  async (context) => void Object.assign(context, await openWorkbench('wrong', { heartbeatMs: 15_000 })),
)
dying.after(({ runtime }) => runtime.close())

const deaths: Record<string, RegExp> = {
  exit: /exited with code 3/,
  abort: /SIGABRT/,
  killed: /SIGKILL/,
  heap: /ran out of memory/,
}
for (const [name, message] of Object.entries(deaths)) {
  dying(`ends as worker_lost: ${name}`, async ({ failure, invoke }) => {
    const error = await failure(`dies/${name}`)
    assert.is(error.code, 'worker_lost')
    assert.match(error.message, message)
    assert.type(await resultOf(invoke('dies/identity')), 'number')
  })
}

dying('ends only the runs of its own process', async ({ invoke, failure }) => {
  const other = await openWorkbench('ok')
  const elsewhere = other.invoke('orders.handlers/later', { args: [100] })
  const [first, second] = await Promise.all([invoke('dies/stubborn'), failure('dies/exit')])
  assert.equal([first.status, second.code], ['lost', 'worker_lost'])
  assert.is(await resultOf(elsewhere), 'done')
  await other.runtime.close()
})

dying('gets an error at the memory limit outside the heap', async ({ failure }) => {
  const { code, message } = await failure('dies/buffers')
  assert.is(code, 'function_failed')
  assert.match(message, /allocat/)
})

dying('is started again after a growing pause', async () => {
  const { runtime, failure, invoke } = await openWorkbench('wrong', { backoffMs: 100 })
  for (let n = 0; n < 4; n++) assert.is((await failure('dies/exit')).code, 'worker_lost')
  const since = clock.monotonic()
  assert.type(await resultOf(invoke('dies/identity')), 'number')
  assert.ok(clock.monotonic() - since > 390)
  await runtime.close()
})

dying.run()

const pipe = suite<Workbench>('a function that forges frames')

pipe.before(async (context) => void Object.assign(context, await openWorkbench('wrong')))
pipe.after(({ runtime }) => runtime.close())

const forgeries = [
  'garbage',
  'falseLength',
  'notJson',
  'notAnObject',
  'unknownType',
  'foreignRun',
  'secondReady',
  'wrongField',
  'foreignTask',
  'faultTwice',
  'oversized',
]
for (const name of forgeries) {
  pipe(`gets its process killed: ${name}`, async ({ failure, invoke }) => {
    assert.is((await failure(`pipe/${name}`)).code, 'protocol_violation')
    assert.type(await resultOf(invoke('dies/identity')), 'number')
  })
}

pipe('takes no memory of other processes with results that no run has', async () => {
  const { runtime, failure, build } = await openWorkbench('wrong', { heartbeatMs: 15_000 })
  const forging = Array.from({ length: 13 }, (_, n) =>
    failure('pipe/largeForeignRun', { build: { ...build, env_id: `env ${n}` } }),
  )
  for (const { code } of await Promise.all(forging)) assert.is(code, 'protocol_violation')
  let listens = true
  const other = new Intake({ unread: 0, listen: (yes) => void (listens = yes) })
  const done = other.hold(1 << 20)
  assert.ok(listens, 'a process with a result of 1 MiB is read')
  done()
  other.end()
  await runtime.close()
})

pipe('loses its process when it closes the pipe', async ({ failure, invoke }) => {
  assert.is((await failure('pipe/closes')).code, 'worker_lost')
  assert.type(await resultOf(invoke('dies/identity')), 'number')
})

pipe('cannot guess the id of another run', async () => {
  const { runtime, invoke } = await openWorkbench('wrong')
  const other = invoke('dies/stubborn')
  assert.is((await invoke('pipe/guessesIds')).status, 'lost')
  assert.is((await other).status, 'lost')
  assert.type(await resultOf(invoke('dies/identity')), 'number')
  await runtime.close()
})

pipe.run()

const flooding = suite<Workbench>('a function that floods')

flooding.before(
  async (context) => void Object.assign(context, await openWorkbench('wrong', { heartbeatMs: 10_000 })),
)
flooding.after(({ runtime }) => runtime.close())

flooding('the console keeps 256 KiB of its output', async ({ invoke }) => {
  let bytes = 0
  const lines: string[] = []
  const onLog = ({ text }: { text: string }) => {
    bytes += text.length
    lines.push(text)
  }
  assert.is(await resultOf(invoke('floods/console50MB', { onLog })), 'flooded')
  assert.ok(bytes > 250_000 && bytes <= (256 << 10) + 100, `got ${bytes}`)
  assert.is(lines.at(-1), '… more output was cut off')
})

flooding('the descriptor keeps no output, and the service does not grow', async ({ invoke }) => {
  const before = process.memoryUsage.rss()
  let lines = 0
  assert.is(await resultOf(invoke('floods/raw50MB', { onLog: () => lines++ })), 'flooded')
  assert.is(lines, 0)
  assert.ok(process.memoryUsage.rss() - before < 60e6)
})

flooding('one line gets it split into lines of 8 KiB', async ({ invoke }) => {
  const lengths: number[] = []
  await invoke('floods/oneLine', { onLog: ({ text }) => lengths.push(text.length) })
  assert.equal(lengths, [8192, 8192, 3616])
})

for (const end of ['', '\n'])
  flooding(
    `the console with ${end ? 'a' : 'an unfinished'} long line after many gets it cut`,
    async ({ invoke }) => {
      const lines: string[] = []
      const onLog = ({ text }: { text: string }) => void lines.push(text)
      const args = [9998, 100_000, end]
      assert.is(await resultOf(invoke('floods/longLineAfter', { args, onLog })), 'printed')
      const [first, second, mark] = lines.slice(9998)
      assert.equal([first?.length, second?.length, mark], [8192, 8192, '… more output was cut off'])
      assert.is(lines.length, 10_001)
    },
  )

flooding.run()

const reaching = suite<Workbench>('a function that reaches outside its build')

reaching.before(async (context) => void Object.assign(context, await openWorkbench('wrong')))
reaching.after(({ runtime }) => runtime.close())

reaching('is refused files, processes, threads and bindings', async ({ invoke, cacheDir }) => {
  writeFileSync(join(cacheDir, 'outside.txt'), 'secret')
  const got = (await resultOf(invoke('reaches/reach'))) as Record<string, string>
  const { writeTmp, ...rest } = got
  for (const [what, code] of Object.entries(rest)) assert.is(code, 'ERR_ACCESS_DENIED', what)
  // In the namespace tier, /tmp belongs to the child alone.
  if (TIER === 'process') assert.is(writeTmp, 'ERR_ACCESS_DENIED')
  assert.not.ok(existsSync('/tmp/svc-written.txt'))
})

reaching('has an empty environment', async ({ invoke }) => {
  assert.equal(await resultOf(invoke('reaches/env')), { PATH: '/usr/local/bin:/usr/bin:/bin', TZ: 'UTC' })
})

reaching('may read its own build', async ({ invoke }) => {
  assert.is(await resultOf(invoke('reaches/own')), true)
})

reaching('changes prototypes only in its own process', async ({ invoke, build }) => {
  assert.is(await resultOf(invoke('reaches/pollute')), 'polluted')
  assert.equal(await resultOf(invoke('reaches/polluted')), { seen: 'yes' })
  const elsewhere = invoke('reaches/polluted', { build: { ...build, env_id: 'another' } })
  assert.equal(await resultOf(elsewhere), { seen: 'no' })
  assert.is(({} as { polluted?: string }).polluted, undefined)
})

reaching('may signal only its own process', async ({ invoke }) => {
  assert.equal(await resultOf(invoke('reaches/signals')), {
    parent: 'ERR_ACCESS_DENIED',
    group: 'ERR_ACCESS_DENIED',
    everybody: 'ERR_ACCESS_DENIED',
    native: 'ERR_ACCESS_DENIED',
    debug: 'ERR_ACCESS_DENIED',
    handle: 'ERR_ACCESS_DENIED',
    priority: 'ERR_ACCESS_DENIED',
    own: { got: 'true' },
  })
})

reaching('cannot find out which files exist elsewhere', async ({ invoke }) => {
  const there = await resultOf(invoke('reaches/exists', { args: ['/etc/passwd'] }))
  assert.equal(there, await resultOf(invoke('reaches/exists', { args: ['/etc/passwb'] })))
})

reaching('cannot change the environment that libc reads', async ({ invoke }) => {
  assert.is(await resultOf(invoke('reaches/zone')), 0)
})

reaching.run()
