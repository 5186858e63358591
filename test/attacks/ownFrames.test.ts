import { attackSuite } from './attack.ts'
import { deployed, endOf, shown } from './calls.ts'
import { FORGE } from './flood.ts'

/** Frames of the run itself, whose id its code can read: bytes, with `id` and `next`, the number of its next host call. */
const FRAMES: Readonly<Record<string, string>> = {
  'a result twice': `[frame({ type: 'result', id, value: 1 }), frame({ type: 'result', id, value: 2 })]`,
  'a result of many lists': `[frame('{"type":"result","id":' + id + ',"value":[' + '[],'.repeat(2_600_000) + '0]}')]`,
  'a result of many members': `[frame('{"type":"result","id":' + id + ',"value":{' + Array.from({ length: 700_000 }, (_, n) => '"k' + n + '":0').join() + '}}')]`,
  'many members beside the result': `[frame('{"type":"result","id":' + id + ',"value":0,' + Array.from({ length: 700_000 }, (_, n) => '"k' + n + '":0').join() + '}')]`,
  'bytes that are no UTF-8': `[framed(Buffer.concat([Buffer.from('{"type":"result","id":' + id + ',"value":"'), Buffer.alloc(100_000, 0xff), Buffer.from('"}')]))]`,
  'an empty frame': `[framed(Buffer.alloc(0))]`,
  'a failure with a large message': `[frame({ type: 'failure', id, code: 'function_failed', message: 'm'.repeat(7_000_000), stack: 's'.repeat(1_000_000) })]`,
  'a failure with wide fields': `[frame({ type: 'failure', id, code: 'function_failed', message: 'm', details: { fields: Object.fromEntries(Array.from({ length: 3000 }, (_, n) => ['f' + n, n])) } })]`,
  'large lines': `Array.from({ length: 3 }, () => frame({ type: 'log', id, source: 'stdout', text: 'l'.repeat(8_000_000) }))`,
  'a host call out of turn': `[frame({ type: 'host', id, call: 1e9, request: { op: 'context', key: 'KEY' } })]`,
  'a call with arguments of another type': `[frame({ type: 'host', id, call: next, request: { op: 'call', fn: 'main/attack', args: 'x'.repeat(100_000) } })]`,
  'parameters like prototypes': `[frame('{"type":"host","id":' + id + ',"call":' + next + ',"request":{"op":"files","action":"list","params":{"__proto__":{"limit":100},"constructor":1,"limit":"100"}}}')]`,
  'many parameters': `[frame('{"type":"host","id":' + id + ',"call":' + next + ',"request":{"op":"files","action":"list","params":{' + Array.from({ length: 200_000 }, (_, n) => '"p' + n + '":0').join() + '}}}')]`,
  'the end of the process': `[frame({ type: 'ending', id }), frame({ type: 'result', id, value: 0 })]`,
  'half a frame': `[Buffer.from([0, 0, 1, 0, 0x7b])]`,
}

/** Functions that declare different keys of context have processes of their own. */
const CODE = `${FORGE}
  import { AsyncLocalStorage } from 'node:async_hooks'
  import { setTimeout as delay } from 'node:timers/promises'
  import { fn } from 'svc'
  const framed = (bytes: Buffer) => { const head = Buffer.alloc(4); head.writeUInt32BE(bytes.length); return Buffer.concat([head, bytes]) }
  const forging = (key: string, make: (id: number, next: number) => Buffer[]) => fn({ context: [key] }, async () => {
    let id = -1
    const { getStore } = AsyncLocalStorage.prototype
    AsyncLocalStorage.prototype.getStore = function (this: any) { const run: any = getStore.call(this); if (run?.info) id = run.id; return run }
    await emit('x')
    AsyncLocalStorage.prototype.getStore = getStore
    if (id < 0) throw new Error('no id')
    for (const bytes of make(id, 1)) put(bytes)
    await delay(500)
    return 'continues'
  })
  ${Object.values(FRAMES)
    .map(
      (make, index) =>
        `export const forge${index} = forging('KEY_${index}', (id, next) => ${make} as Buffer[])`,
    )
    .join('\n')}`

attackSuite('frames of the run itself', [
  {
    id: 'A/05-forged-frames/own-run',
    attempt: `write frames with the id of the run itself: ${Object.keys(FRAMES).join(', ')}`,
    severity: 'high',
    run: async ({ fresh }) => {
      const { attacker, victim, server } = await fresh({ NODE_OPTIONS: '--max-old-space-size=300' })
      const { api } = attacker
      const project = await deployed(api, { 'main.ts': CODE })
      const outcomes = await Promise.all(
        Object.keys(FRAMES).map(async (name, index) => {
          const run = await endOf(api, project, `forge${index}`)
          if (run.error?.message === 'no id') throw new Error('Expected code to read the id of its run')
          const { status } = await api.send('GET', `/runs/${run.run_id}`)
          if (status !== 200) throw new Error(`${name}: the run is shown with ${status}`)
          return `${name}: ${shown(run)}`
        }),
      )
      const failures = server.output.join('').match(/"level":"error".*/g) ?? []
      if (failures.length > 0) throw new Error(`the service failed: ${failures[0]?.slice(0, 300)}`)
      const own = await deployed(victim.api, { 'main.ts': `export const attack = () => 'alive'` })
      if ((await endOf(victim.api, own, 'attack')).result !== 'alive')
        throw new Error('another tenant has no functions')
      return outcomes.join(', ')
    },
  },
])
