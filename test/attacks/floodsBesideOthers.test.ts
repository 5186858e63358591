import { attackSuite } from './attack.ts'
import { boundedMemory } from './boundedMemory.ts'
import { deployed, endOf, shown } from './calls.ts'
import { FORGE, LARGE, repeating, writing } from './flood.ts'
import type { Target } from './target.ts'

const EMITS = repeating(
  '',
  `await Promise.all(Array.from({ length: 100 }, () => emit('flood', 'x'.repeat(1000))))`,
)

/** Runs the code in so many projects at once. Fails unless runs of another tenant succeed meanwhile. */
const besideAnother = async (target: Target, code: string, projects: number): Promise<string> => {
  const { attacker, victim } = target
  const own = await deployed(victim.api, { 'main.js': `export const works = (n) => n` })
  const floods = await Promise.all(
    Array.from({ length: projects }, () => deployed(attacker.api, { 'main.ts': code })),
  )
  const running = Promise.all(floods.map((project) => endOf(attacker.api, project, 'attack')))
  const runs = await Promise.all(Array.from({ length: 20 }, (_, n) => endOf(victim.api, own, 'works', n)))
  const failed = runs.filter(({ status }) => status !== 'succeeded')
  if (failed.length > 0) throw new Error(`runs of the victim: ${failed.map(shown).join(', ')}`)
  const ends = new Set((await running).map(shown))
  return `${runs.length} runs of another tenant succeeded; floods: ${[...ends].join(', ')}; ${boundedMemory(target)}`
}

/** Learns the id of its run from what it sends, and asks for a file over and over without reading a reply. */
const UNREAD = `${FORGE}
  import { Socket } from 'node:net'
  export const attack = async () => {
    await files.put('unread.bin', new Uint8Array(1 << 20))
    const write = Socket.prototype.write
    let id = 1
    let last = 0
    Socket.prototype.write = function (this: Socket, ...args: any) {
      const found = /"id":(\\d+),"call":(\\d+)/.exec(String(args[0]))
      if (found) [id, last] = [Number(found[1]), Number(found[2])]
      return Reflect.apply(write, this, args)
    }
    await files.get('unread.bin')
    for (let call = last + 1; call <= last + 6000; call++)
      put(frame({ type: 'host', id, call, request: { op: 'files', action: 'get', params: { path: 'unread.bin' } } }))
    for (;;);
  }`

attackSuite('floods while another tenant works', [
  {
    id: 'A/12-floods/emits',
    attempt: 'emit data without end while another tenant works',
    severity: 'medium',
    run: (target) => besideAnother(target, EMITS, 1),
  },
  {
    id: 'A/12-floods/four',
    attempt: 'write large frames from four projects at once',
    severity: 'medium',
    run: (target) => besideAnother(target, writing(LARGE), 4),
  },
  {
    id: 'A/24-unread-replies',
    attempt: 'ask for a file of a mebibyte six thousand times without reading the replies',
    severity: 'high',
    run: async (target) => {
      const project = await deployed(target.attacker.api, { 'main.ts': UNREAD })
      const run = await endOf(target.attacker.api, project, 'attack')
      if (run.status === 'succeeded') throw new Error('the run succeeded')
      return `the run ended ${shown(run)}; the service: ${boundedMemory(target)}`
    },
  },
])
