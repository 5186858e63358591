import * as assert from 'uvu/assert'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { openWorkbench, resultOf, type Workbench } from './harness.ts'

/** Ways to continue without timers. Each calls `work` again and again. */
const WAYS = `
  import { AsyncResource } from 'node:async_hooks'
  import { open, readFile } from 'node:fs/promises'
  import { createReadStream, readFile as readBack } from 'node:fs'
  import { webcrypto, randomBytes, scrypt } from 'node:crypto'
  import { gzip } from 'node:zlib'
  import { BroadcastChannel } from 'node:worker_threads'
  const file = new URL(import.meta.url)
  const EMPTY = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0)
  export const ways = {
    'promises of files': async (work) => { for (;;) { await readFile(file); work() } },
    'callbacks of files': (work) => { const again = () => readBack(file, () => { work(); again() }); again() },
    'an iterated file handle': async (work) => { for (;;) { for await (const _ of (await open(file)).readLines()); work() } },
    'streams of files': (work) => { const again = () => createReadStream(file).on('data', work).on('close', again); again() },
    'web streams': async (work) => { for (;;) { await new Response(new Blob(['x']).stream().pipeThrough(new CompressionStream('gzip'))).text(); work() } },
    'web cryptography': async (work) => { for (;;) { await webcrypto.subtle.digest('SHA-256', new Uint8Array(9)); work() } },
    'random bytes': (work) => { const again = () => randomBytes(9, () => { work(); again() }); again() },
    'hashes of passwords': (work) => { const again = () => scrypt('a', 'b', 9, { N: 2 }, () => { work(); again() }); again() },
    'compression': (work) => { const again = () => gzip('x', () => { work(); again() }); again() },
    'message ports': (work) => { const { port1, port2 } = new MessageChannel(); port1.onmessage = () => { work(); readBack(file, () => port2.postMessage(1)) }; port2.postMessage(1) },
    'broadcast channels': (work) => { const [a, b] = [new BroadcastChannel('x'), new BroadcastChannel('x')]; a.onmessage = () => { work(); readBack(file, () => b.postMessage(1)) }; b.postMessage(1) },
    'blobs': async (work) => { for (;;) { await new Blob(['x']).text(); work(); await readFile(file) } },
    'WebAssembly': async (work) => { for (;;) { await WebAssembly.compile(EMPTY); work() } },
    'signals': (work) => { process.on('SIGUSR2', () => { work(); process.kill(process.pid, 'SIGUSR2') }); process.kill(process.pid, 'SIGUSR2') },
    'imports': async (work) => { for (let n = 0; ; n++) { await import('./m.js?' + n % 9); await readFile(file); work() } },
    'ticks and microtasks beside files': (work) => { const again = () => readBack(file, () => process.nextTick(() => queueMicrotask(() => { work(); again() }))); again() },
    'resources of its own': (work) => { const resource = new AsyncResource('x'); const again = () => readBack(file, () => resource.runInAsyncScope(() => { work(); again() })); again() },
  }
`
const CODE = `
  import { ways } from './ways.js'
  import { currentRun } from 'svc'
  import { setTimeout as wait } from 'node:timers/promises'
  const mark = Math.random()
  const work = () => { const until = performance.now() + 2; while (performance.now() < until); }
  export const leaves = (name) => void ways[name](work)
  export const leavesEnd = async () => { work(); work(); }
  export const holds = () => wait(600_000, undefined, { signal: currentRun().signal })
  export const works = async (ms) => { for (const until = Date.now() + ms; Date.now() < until; await wait(1)) work() }
  export const marks = () => mark
`
const IN_PARTS = { 'ways.js': WAYS, 'main.js': CODE, 'm.js': '' }

const NAMES = [...WAYS.matchAll(/^ {4}'(.*?)': (?:async )?\(work\)/gm)].map(([, name = '']) => name)

const leftover = suite<Workbench>('code of ended runs beside runs in progress')
leftover.before(async (context) => void Object.assign(context, await openWorkbench(IN_PARTS)))
leftover.after(({ runtime }) => runtime.close())

for (const name of NAMES)
  leftover(
    `its process gets no more runs and is ended; the runs beside it are lost: ${name}`,
    async ({ invoke }) => {
      const mark = await resultOf(invoke('main/marks'))
      const held = invoke('main/holds')
      await resultOf(invoke('main/leaves', { args: [name] }))
      await until(async () => (await resultOf(invoke('main/marks'))) !== mark)
      const outcome = await held
      assert.is(outcome.status, 'lost')
      assert.is(
        outcome.status === 'lost' && outcome.error.message,
        'lost with a run that had ended, and whose code continued',
      )
    },
  )

leftover('a process is kept whose runs in progress work beside ended ones', async ({ invoke }) => {
  const mark = await resultOf(invoke('main/marks'))
  const working = [invoke('main/works', { args: [1000] }), invoke('main/works', { args: [1000] })]
  await resultOf(invoke('main/leavesEnd'))
  for (const each of working) await resultOf(each)
  assert.is(await resultOf(invoke('main/marks')), mark)
})

leftover.run()
