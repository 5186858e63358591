import { attackSuite } from './attack.ts'
import { deployed, endOf, FOREVER, moduleOf, shown, unharmed } from './calls.ts'

/** Functions that never end by themselves, each with a time limit of a second. */
const SPINS: Readonly<Record<string, string>> = {
  loop: `for (;;);`,
  atomics: `Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)`,
  regex: `/^(a+)+$/.test('a'.repeat(60) + 'b')`,
  microtasks: `const again = (): any => Promise.resolve().then(again); await again()`,
  nextTick: `const again = () => process.nextTick(again); again(); ${FOREVER}`,
  never: FOREVER,
  'ignored signal': `for (;;) await new Promise((resolve) => setImmediate(resolve))`,
  'pings answered by hand': `const fs = await import('node:fs'); const body = Buffer.from('{"type":"pong","n":1,"rss":1,"leftover":0}');
    const head = Buffer.alloc(4); head.writeUInt32BE(body.length);
    for (;;) { const until = Date.now() + 1000; while (Date.now() < until); fs.writeSync(3, Buffer.concat([head, body])) }`,
}

attackSuite('runs that do not end', [
  {
    id: 'A/10-spins',
    attempt: 'spin, block, wait without end, and reply to pings by hand, with a time limit of a second',
    severity: 'high',
    run: async (target) => {
      const { api } = target.attacker
      const outcomes = await Promise.all(
        Object.keys(SPINS).map(async (name) => {
          const project = await deployed(api, { 'main.ts': moduleOf(SPINS) })
          const run = await endOf(api, project, 'attack', name)
          if (run.status === 'succeeded') throw new Error(`${name}: the run succeeded`)
          return `${name}: ${shown(run)}`
        }),
      )
      return `${await unharmed(target)}; ${outcomes.join(', ')}`
    },
  },
])
