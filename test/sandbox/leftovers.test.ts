import { randomBytes } from 'node:crypto'
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

/** Ways to let Node's threads work, while no code of the run is executed for long. */
const NATIVE = `
  import { readFile } from 'node:fs/promises'
  import { generateKeyPair, generatePrime, pbkdf2, randomBytes, scrypt, webcrypto } from 'node:crypto'
  import { brotliCompress, constants, gzip } from 'node:zlib'
  const { subtle } = webcrypto
  const BROTLI = { chunkSize: 2 ** 25, params: { [constants.BROTLI_PARAM_LGWIN]: 24 } }
  export const ways = {
    'many rounds': () => pbkdf2('a', 'b', 2 ** 31 - 1, 64, 'sha512', () => {}),
    'many rounds of web cryptography': async () => subtle.deriveBits({ name: 'PBKDF2', hash: 'SHA-512', salt: new Uint8Array(8), iterations: 2 ** 31 - 1 }, await subtle.importKey('raw', new Uint8Array(8), 'PBKDF2', false, ['deriveBits']), 512),
    'hashes of passwords again and again': () => { const again = () => scrypt('a', 'b', 64, { N: 2 ** 15, maxmem: 2 ** 27 }, again); again() },
    'a large prime': () => generatePrime(8192, { safe: true }, () => {}),
    'large keys': () => generateKeyPair('rsa', { modulusLength: 16384 }, () => {}),
    'compression of much': () => brotliCompress(randomBytes(2 ** 24), BROTLI, () => {}),
    'compression again and again': () => { const much = randomBytes(2 ** 20); const again = () => gzip(much, { chunkSize: 2 ** 21 }, again); again() },
    'files again and again': async () => { for (;;) await readFile(new URL('much.txt', import.meta.url)) },
  }
`
const CODE = `
  import { ways } from './ways.js'
  import { ways as native } from './native.js'
  import { currentRun } from 'svc'
  import { pbkdf2Sync, scrypt } from 'node:crypto'
  import { openAsBlob, stat } from 'node:fs'
  import { stat as stats } from 'node:fs/promises'
  import { fileURLToPath } from 'node:url'
  import { promisify } from 'node:util'
  import { createGzip, gzip, gzipSync } from 'node:zlib'
  import { setTimeout as wait } from 'node:timers/promises'
  const mark = Math.random()
  const work = () => { const until = performance.now() + 2; while (performance.now() < until); }
  export const leaves = (name) => void ways[name](work)
  export const leavesNative = (name) => void native[name]()
  export const finishes = async () => {
    pbkdf2Sync('a', 'b', 1, 8, 'sha512')
    gzipSync('x')
    const handle = createGzip()
    handle.write('x')
    await promisify(gzip)('x')
    await promisify(scrypt)('a', 'b', 8)
    await promisify(stat)('.').catch(() => {})
    await stats('/root').catch(() => {})
    await (await openAsBlob(fileURLToPath(import.meta.url))).text()
  }
  export const leavesEnd = async () => { work(); work(); }
  export const holds = () => wait(600_000, undefined, { signal: currentRun().signal })
  export const works = async (ms) => { for (const until = Date.now() + ms; Date.now() < until; await wait(1)) work() }
  export const marks = () => mark
`
const IN_PARTS = {
  'ways.js': WAYS,
  'native.js': NATIVE,
  'main.js': CODE,
  'm.js': '',
  'much.txt': randomBytes(2 ** 22).toString('base64'),
}

const namesIn = (source: string): string[] =>
  [...source.matchAll(/^ {4}'(.*?)': /gm)].map(([, name = '']) => name)

const leftover = suite<Workbench>('code of ended runs beside runs in progress')
leftover.before(async (context) => void Object.assign(context, await openWorkbench(IN_PARTS)))
leftover.after(({ runtime }) => runtime.close())

const replaced = (leaves: string, name: string) =>
  leftover(
    `its process gets no more runs and is ended; the runs beside it are lost: ${name}`,
    async ({ invoke }) => {
      const mark = await resultOf(invoke('main/marks'))
      const held = invoke('main/holds')
      await resultOf(invoke(leaves, { args: [name] }))
      await until(async () => (await resultOf(invoke('main/marks'))) !== mark)
      const outcome = await held
      assert.is(outcome.status, 'lost')
      assert.is(
        outcome.status === 'lost' && outcome.error.message,
        'lost with a run that had ended, and whose code continued',
      )
    },
  )

for (const name of namesIn(WAYS)) replaced('main/leaves', name)
for (const name of namesIn(NATIVE)) replaced('main/leavesNative', name)

leftover('a process is kept whose runs in progress work beside ended ones', async ({ invoke }) => {
  const mark = await resultOf(invoke('main/marks'))
  const working = [invoke('main/works', { args: [1000] }), invoke('main/works', { args: [1000] })]
  await resultOf(invoke('main/leavesEnd'))
  for (const each of working) await resultOf(each)
  assert.is(await resultOf(invoke('main/marks')), mark)
})

leftover(
  'a process is kept whose ended runs read, computed and compressed while they waited for it',
  async ({ invoke }) => {
    const mark = await resultOf(invoke('main/marks'))
    const working = invoke('main/works', { args: [1000] })
    await resultOf(invoke('main/finishes'))
    await resultOf(working)
    assert.is(await resultOf(invoke('main/marks')), mark)
  },
)

leftover.run()
