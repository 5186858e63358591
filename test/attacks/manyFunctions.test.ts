import { newId } from '../../src/ids.ts'
import { deploy } from '../support/build.ts'
import { hasEnded } from '../support/hasEnded.ts'
import { attackSuite } from './attack.ts'
import { endOf, shown } from './calls.ts'
import { cpuSecondsOf } from './cpu.ts'
import { allRefused, expected } from './raw.ts'

/** Segments of a path, each of which can be a parameter. */
const SEGMENTS = 11
const MOST_PARAMETERS = 8

/** Different patterns that match the same path. */
const patternsOf = (count: number): string[] =>
  Array.from({ length: 2 ** SEGMENTS }, (_, mask) =>
    Array.from({ length: SEGMENTS }, (_, at) => ((mask >> at) & 1 ? `:p${at}` : 'a')),
  )
    .filter((segments) => {
      const parameters = segments.filter((segment) => segment !== 'a').length
      return parameters > 0 && parameters <= MOST_PARAMETERS
    })
    .map((segments) => `/${segments.join('/')}`)
    .slice(0, count)

const moduleOf = (lines: readonly string[]) => ({
  'main.js': `import { fn } from 'svc'\n${lines.join('\n')}`,
})

/** A build has at most 200 webhooks with parameters. */
const OF_ONE_BUILD = 200
const PROJECTS = 5

const WRONG_REQUESTS = 95
const CHANGES = 20
const WRONG_CALLS = 60
const LISTS = 100
/** A part of a name. */
const LONG = 'a'.repeat(115)

/** CPU time for all requests of an attack together; each of them needs about a millisecond. */
const MOST_CPU_S = 1

attackSuite('builds with many functions', [
  {
    id: 'B/04-webhooks/token/patterns',
    attempt: 'call webhooks with wrong tokens at a path that a thousand patterns of five builds match',
    severity: 'high',
    run: async (target) => {
      const { server, tenant } = await target.fresh()
      const { api, org } = await tenant('starter')
      const patterns = patternsOf(PROJECTS * OF_ONE_BUILD)
      for (let from = 0; from < patterns.length; from += OF_ONE_BUILD) {
        const functions = patterns
          .slice(from, from + OF_ONE_BUILD)
          .map(
            (each, n) => `export const f${n} = fn({ webhook: { service: 's', path: '${each}' } }, () => 1)`,
          )
        await deploy(api, `p-${newId()}`, moduleOf(functions))
      }
      const path = Array.from({ length: SEGMENTS }, () => 'a').join('/')
      const before = cpuSecondsOf(server.process.pid)
      const outcomes: Record<string, number> = {}
      for (let n = 0; n < WRONG_REQUESTS; n++) {
        const token = String(n).padStart(33, '0')
        const url = `${server.url}/webhook/${org}/prod/s/${path}/${token}`
        outcomes[token] = (await fetch(url, { method: 'POST' })).status
      }
      const used = cpuSecondsOf(server.process.pid) - before
      expected(used < MOST_CPU_S, `${WRONG_REQUESTS} requests took ${used} s of the processor`)
      return `${allRefused(outcomes, [404])}, in ${used.toFixed(1)} s of the processor`
    },
  },
  {
    id: 'B/11-amplification/functions/event',
    attempt: 'occupy every node by ten thousand functions for one event, and small changes of their project',
    severity: 'high',
    run: async (target) => {
      const { server, attacker } = await target.fresh()
      const { api, org } = attacker
      const project = `p-${newId()}`
      const functions = Array.from(
        { length: 10_000 },
        (_, n) => `export const f${n} = fn({ onEvent: 'one' }, () => 1)`,
      )
      await deploy(api, project, moduleOf(functions))
      const before = cpuSecondsOf(server.process.pid)
      for (let n = 0; n < CHANGES; n++) {
        await api.patch(`/projects/${project}`, { network: [`h${n}.example`] })
        const { status } = await fetch(`${server.url}/webhook/${org}/prod/s/x`, { method: 'POST' })
        expected(status === 404, `a webhook that does not exist: ${status}`)
      }
      const used = cpuSecondsOf(server.process.pid) - before
      expected(used < MOST_CPU_S, `${CHANGES} changes took ${used} s of the processor`)
      return `${CHANGES} changes and look-ups in ${used.toFixed(1)} s of the processor`
    },
  },
  {
    id: 'B/11-amplification/functions/names',
    attempt:
      'call functions that do not exist, with names nearly as long and alike as those of five hundred others',
    severity: 'critical',
    run: async (target) => {
      const { server, attacker } = await target.fresh()
      const { api } = attacker
      const project = `p-${newId()}`
      const alike = Array.from(
        { length: 499 },
        (_, n) => `export const ${LONG}${String(n).padStart(3, '0')} = () => 1`,
      )
      await deploy(api, project, {
        [`${LONG}.js`]: alike.join('\n'),
        'main.js': `import { call } from 'svc'
          export const attack = async (count, ref) => {
            const calls = await Promise.allSettled(Array.from({ length: count }, () => call(ref)))
            return calls.filter(({ status }) => status === 'rejected').length
          }`,
      })
      await endOf(api, project, 'attack', 1, 'x/main') // the process of the project has started
      const before = cpuSecondsOf(server.process.pid)
      const run = await endOf(api, project, 'attack', WRONG_CALLS, `${LONG}x/x${LONG}xx`)
      const used = cpuSecondsOf(server.process.pid) - before
      expected(run.result === WRONG_CALLS, `${shown(run)}: ${JSON.stringify(run.result)}`)
      expected(used < MOST_CPU_S, `${WRONG_CALLS} calls took ${used} s of the processor`)
      return `${WRONG_CALLS} calls are refused in ${used.toFixed(1)} s of the processor`
    },
  },
  {
    id: 'B/11-amplification/functions/lists',
    attempt: 'read lists of one entry from a build with ten thousand event handlers',
    severity: 'medium',
    run: async (target) => {
      const { server, attacker } = await target.fresh()
      const { api } = attacker
      const project = `p-${newId()}`
      const functions = Array.from(
        { length: 10_000 },
        (_, n) => `export const f${n} = fn({ onEvent: 'e${n}' }, () => 1)`,
      )
      await deploy(api, project, moduleOf(functions))
      const before = cpuSecondsOf(server.process.pid)
      for (let n = 0; n < LISTS; n++) {
        const { data, pagination } = await api.page(`/projects/${project}/event-handlers?limit=1&offset=${n}`)
        expected(data.length === 1 && pagination.total === 10_000, `a list of ${pagination.total}`)
      }
      const used = cpuSecondsOf(server.process.pid) - before
      expected(used < MOST_CPU_S, `${LISTS} lists took ${used} s of the processor`)
      return `${LISTS} lists in ${used.toFixed(1)} s of the processor`
    },
  },
  {
    id: 'B/11-amplification/functions/changes',
    attempt:
      'compare a build whose functions have 13 MB of metadata thirty times at once, and deploy it as often',
    severity: 'critical',
    run: async (target) => {
      const { server, attacker, victim } = await target.fresh({ NODE_OPTIONS: '--max-old-space-size=300' })
      const { api } = attacker
      const project = `p-${newId()}`
      const input = `{ type: 'object', properties: Object.fromEntries(Array.from({ length: 190 }, (_, n) => ['p' + n, { type: 'string', minLength: 1 }])) }`
      const lines = Array.from(
        { length: 260 },
        (_, n) => `export const f${n} = fn({ mcp: { service: 's', description: 'x', input } }, () => 1)`,
      )
      const { 'main.js': module } = moduleOf([`const input = ${input}`, ...lines])
      const files = Object.fromEntries(Array.from({ length: 7 }, (_, n) => [`m${n}.js`, module]))
      const { build_id } = await deploy(api, project, files)
      const build = `/projects/${project}/builds/${build_id}`
      const asked = Array.from({ length: 60 }, (_, n) =>
        n % 2 === 0 ? api.send('GET', `${build}/changes`) : api.send('POST', `${build}/deploy`),
      )
      const statuses = (await Promise.all(asked)).map(({ status }) => status)
      expected(!hasEnded(server.process), 'the service ended')
      await victim.api.get('/env')
      return allRefused(Object.fromEntries(statuses.entries()), [200, 503])
    },
  },
])
