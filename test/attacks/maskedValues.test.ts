import { randomBytes } from 'node:crypto'
import { deploy, handle, publish, type Run, runsOf } from '../support/build.ts'
import { hasEnded } from '../support/hasEnded.ts'
import { until } from '../support/until.ts'
import { newId } from '../../src/ids.ts'
import { collidingValues } from '../support/collidingValues.ts'
import { attackSuite } from './attack.ts'
import { deployed, endOf, shown } from './calls.ts'
import { cpuSecondsOf } from './cpu.ts'
import type { Tenant } from './target.ts'

/** A private key of 4096 bits has 51 lines. */
const lines = Array.from({ length: 51 }, () => randomBytes(48).toString('base64'))
const PRIVATE_KEY = ['-----BEGIN PRIVATE KEY-----', ...lines, '-----END PRIVATE KEY-----'].join('\n')
const LONG = randomBytes(9000).toString('base64')
const SHORT = `sk_live_${randomBytes(24).toString('hex')}`

const PRINTS = `import { context } from 'svc'
  export const attack = async (key: string, kind: string) => {
    const value = await context(key)
    if (kind === 'print') return console.log(value)
    if (kind === 'json') return console.log(JSON.stringify({ padding: 'p'.repeat(8170), value }))
    if (kind === 'pieces') { for (const char of value) process.stdout.write(char); return console.log() }
    if (kind === 'object') return console.log({ nested: { value } })
    if (kind === 'throw') throw new Error('m'.repeat(8192 - 20) + value)
    if (kind === 'cause') throw new Error('failed', { cause: new Error('c'.repeat(1024 - 20) + value) })
    if (kind === 'fields') throw Object.assign(new Error('failed'), { [value]: 1, list: [{ value }] })
    if (kind === 'twice') return { body: JSON.stringify({ text: JSON.stringify({ value }) }) }
  }`

/** Everything that the API shows of a run. */
const shownOf = async ({ api }: Tenant, { run_id }: Run): Promise<string> =>
  (await Promise.all(['', '/logs', '/why'].map((part) => api.send('GET', `/runs/${run_id}${part}`))))
    .map(({ text }) => text)
    .join('\n')

/** Parts of a secret of eleven characters; a match of one is no chance. */
const PART = 11

/** The part of a secret in a text; undefined if there is none. */
const partIn = (text: string, secret: string): string | undefined => {
  for (let at = 0; at + PART <= secret.length; at += PART) {
    const part = secret.slice(at, at + PART)
    if (!/\n|-{3}|PRIVATE/.test(part) && text.includes(part)) return part
  }
  return undefined
}

const MATCHES = `import { context } from 'svc'
  export const attack = async (kind: string) => {
    const value = await context('KEY')
    if (kind === 'many') return value.repeat(1_400_000)
    if (kind === 'strings') return Array.from({ length: 700_000 }, () => value)
    if (kind === 'escaped') return Array.from({ length: 600_000 }, () => '\\n' + value)
    return (await context('WALK')) && ('a'.repeat(31) + 'b').repeat(180_000)
  }`

const READS = `import { context } from 'svc'
  export const attack = async (count: number, length: number) => {
    const values: string[] = []
    for (let n = 0; n < count; n++) values.push(await context('K' + n))
    const all = values.map((value) => value.slice(0, -1)).join(' ')
    return all.repeat(Math.ceil(length / all.length)).slice(0, length)
  }`
const COLLIDING = 200

/** CPU time of the service for one run with a result of 6 MiB. */
const MOST_CPU_S = 2.5

attackSuite('values of context in what functions send', [
  {
    id: 'B/03-permissions/masking/long',
    attempt:
      'publish a long value or one with many lines: in lines that are cut, pieces, messages, causes and fields',
    severity: 'medium',
    run: async ({ attacker }) => {
      const { api } = attacker
      const project = await deployed(api, { 'main.ts': PRINTS })
      const values = { PEM: PRIVATE_KEY, LONG, SHORT }
      for (const [key, value] of Object.entries(values))
        await api.post(`/projects/${project}/context`, { key, value })
      const found: string[] = []
      let count = 0
      for (const [key, value] of Object.entries(values))
        for (const kind of ['print', 'json', 'pieces', 'object', 'throw', 'cause', 'fields', 'twice']) {
          const run = await handle(api, 'svc:call', { fn: 'main/attack', project, args: [key, kind] })
          const part = partIn(await shownOf(attacker, run), value)
          if (part !== undefined) found.push(`${kind} of ${key}: ${part}`)
          count++
        }
      if (found.length > 0) throw new Error(`published: ${found.join(', ')}`)
      return `no part in ${count} runs`
    },
  },
  {
    id: 'B/03-permissions/masking/cost',
    attempt: 'occupy the service with the search for a value that is in a result a million times',
    severity: 'high',
    run: async ({ fresh }) => {
      const { attacker, victim, server } = await fresh({ NODE_OPTIONS: '--max-old-space-size=300' })
      const { api } = attacker
      const project = `p-${newId()}`
      await deploy(api, project, { 'main.ts': MATCHES })
      await api.post(`/projects/${project}/context`, { key: 'KEY', value: 'abcd' })
      await api.post(`/projects/${project}/context`, { key: 'WALK', value: 'a'.repeat(64) })
      const outcomes: string[] = []
      for (const kind of ['many', 'strings', 'escaped', 'walk']) {
        const before = cpuSecondsOf(server.process.pid)
        const { event_id } = await publish(api, 'svc:call', { fn: 'main/attack', project, args: [kind] })
        const run = await until(
          async () => {
            if (hasEnded(server.process)) return 'died'
            return (await runsOf(api, event_id)).find(({ status }) => status !== 'running')
          },
          { timeoutMs: 30_000, everyMs: 100 },
        )
        if (run === 'died') throw new Error(`The service died: ${kind} ${server.output.join('').slice(-300)}`)
        const used = cpuSecondsOf(server.process.pid) - before
        outcomes.push(`${kind}: ${shown(run)}, ${used.toFixed(1)} s of CPU`)
        if (used > MOST_CPU_S) throw new Error(outcomes.join('; '))
      }
      await victim.api.get('/env')
      return outcomes.join('; ')
    },
  },
  {
    id: 'B/03-permissions/masking/collisions',
    attempt: 'occupy the service with values that are chosen for one place of the hash table of the search',
    severity: 'high',
    run: async ({ fresh }) => {
      const { attacker, server } = await fresh()
      const { api } = attacker
      const project = await deployed(api, { 'main.ts': READS })
      for (const [n, value] of collidingValues(COLLIDING).entries())
        await api.post(`/projects/${project}/context`, { key: `K${n}`, value })
      const before = cpuSecondsOf(server.process.pid)
      const run = await endOf(api, project, 'attack', COLLIDING, 6_000_000)
      const used = cpuSecondsOf(server.process.pid) - before
      if (run.status !== 'succeeded' || used > MOST_CPU_S) throw new Error(`${shown(run)}, ${used} s of CPU`)
      return `${COLLIDING} values in a result of 6 MB: ${used.toFixed(1)} s of CPU`
    },
  },
])
