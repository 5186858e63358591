import type { Static } from 'typebox'
import type * as schemas from '../../src/api/schemas.ts'
import { attackSuite } from './attack.ts'

type RunLogs = Static<typeof schemas.RunLogs>

/** Opens files and timers until the system refuses, and keeps all of them. */
const RESOURCES = `
  import { openSync } from 'node:fs'
  export const attack = async () => {
    const refused: string[] = []
    const kept: unknown[] = []
    try {
      for (let n = 0; n < 100_000; n++) kept.push(openSync(import.meta.filename, 'r'))
    } catch (error: any) {
      refused.push('files: ' + error.code + ' after ' + kept.length)
    }
    const { Socket } = await import('node:net')
    const sockets = Array.from({ length: 2000 }, () => new Socket().on('error', () => {}).connect(9, '192.0.2.1'))
    kept.push(sockets)
    for (let n = 0; n < 50_000; n++) kept.push(setInterval(() => {}, 1))
    process.title = 'x'.repeat(100_000)
    globalThis.kept = kept
    return refused
  }
`

const LINES = 40_000

/** Prints far more than is kept, with line breaks and escape sequences. */
const PRINTING = `
  export const attack = async () => {
    for (let n = 0; n < ${LINES}; n++) console.log('\\u001b[2J forged "level":"error"\\r\\n' + n)
    await new Promise((resolve) => setTimeout(resolve, 100))
    return 'printed'
  }
`

attackSuite('resources of the system and of the log', [
  {
    id: 'A/20-resources',
    attempt: 'take all file descriptors, sockets and timers of the machine and keep them after the run',
    severity: 'medium',
    async run(target) {
      const { status, result, error } = await target.run(RESOURCES)
      const { status: reply } = await target.victim.api.send('GET', '/env')
      if (reply !== 200) throw new Error(`The victim's API returned ${reply}`)
      const files = JSON.stringify(result ?? error)
      if (status === 'succeeded' && !files.includes('EMFILE') && !files.includes('ERR_'))
        throw new Error(`Nothing was refused: ${files}`)
      return `the run ${status} with ${files}; the victim's API replied`
    },
  },
  {
    id: 'A/20-resources/run-output',
    attempt: `print ${LINES} lines with escape sequences and line breaks`,
    severity: 'low',
    async run(target) {
      const run = await target.run(PRINTING)
      const log = await target.attacker.api.get<RunLogs>(`/runs/${run.run_id}/logs`)
      const text = log.lines.map((line) => line.text).join('\n')
      if (log.lines.length > 10_001) throw new Error(`${log.lines.length} lines are kept`)
      if (Buffer.byteLength(text) > 257 << 10) throw new Error(`${Buffer.byteLength(text)} bytes are kept`)
      return `${log.lines.length} lines and ${Buffer.byteLength(text)} bytes are kept`
    },
  },
  {
    id: 'B/12-rates',
    attempt: 'exceed the rate of the plan with another environment, other headers and other methods',
    severity: 'medium',
    async run(target) {
      const { api, org } = await target.tenant('scale')
      const operator = `${target.server.url}/operator`
      const { env_id } = await target.operator.post<{ env_id: string }>(`${operator}/orgs/${org}/envs`, {
        name: 'second',
      })
      const { token } = await target.operator.post<{ token: string }>(`${operator}/envs/${env_id}/api-keys`, {
        name: 'second',
      })
      await target.operator.patch(`${operator}/orgs/${org}`, { plan: 'free' })
      const began = performance.now()
      const replies = await Promise.all(
        Array.from({ length: 60 }, (_, n) =>
          api.send(['GET', 'HEAD'][n % 2] ?? 'GET', n % 3 === 0 ? '/env' : '/runs/none', {
            headers: {
              ...(n % 4 === 0 && { Authorization: `Bearer ${token}` }),
              'X-Forwarded-For': `203.0.113.${n}`,
            },
          }),
        ),
      )
      const passed = replies.filter(({ status }) => status !== 429).length
      const allowed = 5 + Math.ceil(((performance.now() - began) / 1000) * 5)
      if (passed > allowed) throw new Error(`${passed} of 60 requests passed, ${allowed} are allowed`)
      return `${passed} of 60 requests passed`
    },
  },
])
