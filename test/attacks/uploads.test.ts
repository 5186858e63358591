import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { newId } from '../../src/ids.ts'
import { termsOf } from '../../src/plans/plans.ts'
import { type BuildUpload, type Files, formOf, upload } from '../support/build.ts'
import { FORGE } from '../support/forge.ts'
import { hostileZips } from '../support/hostileZips.ts'
import type { Answer, Api } from '../support/http.ts'
import { until } from '../support/until.ts'
import { attackSuite } from './attack.ts'
import { expectRefusal } from './diskUse.ts'
import { zipBuild } from '../support/zipBuild.ts'

/** The processes below a process that run Node. */
const nodesBelow = (pid: number): number[] => {
  const parents = new Map<number, number>()
  const names = new Map<number, string>()
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue
    try {
      const stat = readFileSync(`/proc/${entry}/stat`, 'utf8')
      const end = stat.lastIndexOf(')')
      names.set(Number(entry), stat.slice(stat.indexOf('(') + 1, end))
      parents.set(Number(entry), Number(stat.slice(end + 2).split(' ')[1]))
    } catch {} // it ended meanwhile
  }
  const isBelow = (one: number): boolean => {
    const parent = parents.get(one)
    return parent !== undefined && parent > 1 && (parent === pid || isBelow(parent))
  }
  return [...parents.keys()].filter((one) => /^(node|MainThread)/.test(names.get(one) ?? '') && isBelow(one))
}

const uploaded = async (api: Api, files: Files): Promise<{ answer: Answer; functions: string }> => {
  const project = `p-${newId()}`
  await api.post('/projects', { name: project })
  const answer = await upload(api, project, files)
  const { data } = answer.json as { data?: BuildUpload }
  if (answer.status !== 201 || !data) return { answer, functions: '' }
  await api.send('POST', `/projects/${project}/builds/${data.build_id}/deploy`)
  const { text } = await api.send('GET', `/projects/${project}/event-handlers`)
  return { answer, functions: text }
}

const DONE = "forge({ type: 'done' })\nawait idle()"

attackSuite('uploads', [
  {
    id: 'A/16-starvation/uploads',
    attempt: 'start as many processes as there are uploads, of builds that never end to load',
    severity: 'high',
    async run(target) {
      const { attacker, victim, server } = await target.fresh()
      for (const { api } of [attacker, victim]) await api.post('/projects', { name: 'many' })
      const before = nodesBelow(server.process.pid ?? 0).length
      const spin = await zipBuild({ 'main.js': 'for (;;);' })
      const leaving = new AbortController()
      const { signal } = leaving
      let refused = 0
      const sent = Array.from({ length: 36 }, () =>
        attacker.api
          .send('POST', '/projects/many/builds', { body: formOf(spin), signal })
          .then(({ status, headers }) => {
            if (status === 429 && Number(headers.get('Retry-After')) > 0) refused++
          })
          .catch(() => {}),
      )
      let most = 0
      const running = () => {
        const now = nodesBelow(server.process.pid ?? 0)
        most = Math.max(most, now.length - before)
        return now
      }
      await until(() => running().length - before >= 2)
      const sampling = setInterval(running, 100)
      const mine = await upload(victim.api, 'many', { 'main.js': 'export const f = () => 1' })
      const beyond = 36 - termsOf.self_host.counts.buildUploads
      await until(() => refused >= beyond)
      clearInterval(sampling)
      const spinning = running()
      leaving.abort()
      await Promise.all(sent)
      // One process may start for the next inspection. It has no build.
      const isOver = (now: readonly number[]) =>
        now.length - before <= 1 && !now.some((pid) => spinning.includes(pid))
      await until(() => isOver(running()), { timeoutMs: 30_000 })
      if (mine.status !== 201) throw new Error(`the victim's upload ended ${mine.status}`)
      if (most > 2 || refused > beyond)
        throw new Error(`${most} processes at once; ${refused} of 36 uploads were refused`)
      return `${most} processes for 36 uploads, ${refused} refused; the victim's upload took its turn, and all ended with their clients`
    },
  },
  {
    id: 'A/17-inspection',
    attempt:
      'forge the report of an inspection: files that do not exist, names, control characters, floods, bombs',
    severity: 'high',
    async run({ attacker: { api } }) {
      const forged: Readonly<Record<string, string>> = {
        'another file': `forge({ type: 'module', ns: 'x', file: '../../etc/passwd', functions: [] })\n${DONE}`,
        'control characters': `forge({ type: 'done', error: '\\u001b[2J\\r\\u0000forged' })\nawait idle()`,
        'a flood of starts': `for (;;) forge({ type: 'ready' })`,
        'a flood of output': `for (;;) forge({ type: 'log', id: 0, source: 'stdout', text: 'x' })`,
        'a flood of functions': `const functions = Array.from({ length: 20000 }, (_, i) => ({ var: 'f' + i }))\nforge({ type: 'module', ns: '', file: 'main.js', functions })\n${DONE}`,
        'huge metadata': `forge({ type: 'module', ns: '', file: 'main.js', functions: [{ var: 'f', metadata: { onEvent: 'e', x: 1, webhook: { service: 's', path: '/', description: 'd'.repeat(1024) }, secretHeaders: Array.from({ length: 100 }, (_, i) => 'h'.repeat(120) + i) } }] })\n${DONE}`,
        'a function twice': `forge({ type: 'module', ns: '', file: 'main.js', functions: [{ var: 'f' }, { var: 'f' }] })\n${DONE}`,
        'no end of output': `process.stdout.write('x'.repeat(1e6)); process.exit(0)`,
      }
      for (const [what, code] of Object.entries(forged)) {
        const { answer } = await uploaded(api, { 'main.js': `${FORGE}\n${code}` })
        expectRefusal(answer, 400, 'bad_request')
        const { message } = (answer.json as { error: { message: string } }).error
        if (/\p{Cc}/u.test(message) || message.length > 9000)
          throw new Error(`${what}: ${message.slice(0, 100)}`)
      }
      const schedules = Array.from(
        { length: 1500 },
        (_, i) =>
          `export const f${i} = fn({ schedule: '0 0 ${1 + (i % 28)} ${1 + (i % 12)} ${i % 7}#5' }, () => 1)`,
      )
      const bomb = await uploaded(api, { 'main.js': `import { fn } from 'svc'\n${schedules.join('\n')}` })
      expectRefusal(bomb.answer, 400, 'bad_request')
      const { answer, functions } = await uploaded(api, {
        'main.js': `${FORGE}\nforge({ type: 'module', ns: '../../etc', file: 'main.js', functions: [{ var: 'fake', metadata: { onEvent: 'e' } }, { var: '../up', metadata: { onEvent: 'e' } }, { var: 'x'.repeat(500), metadata: { onEvent: 'e' } }] })\n${DONE}`,
      })
      if (answer.status !== 201 || !functions.includes('"fake"') || /etc|up"|xxx/.test(functions))
        throw new Error(`${answer.status} ${answer.text} ${functions.slice(0, 300)}`)
      return `${Object.keys(forged).length + 1} forged reports are 400; one with names that its files could export is 201`
    },
  },
  {
    id: 'A/19-zips',
    attempt: 'archives that lead out, lie or explode',
    severity: 'critical',
    async run({ attacker: { api } }) {
      await api.post('/projects', { name: 'zips' })
      const tried = hostileZips.filter(([, , , limits]) => limits === undefined)
      for (const [what, bytes] of tried) {
        const hash = createHash('sha256').update(bytes).digest('hex')
        const answer = await upload(api, 'zips', { bytes, hash })
        if (answer.status !== 400) throw new Error(`a zip that ${what}: ${answer.status} ${answer.text}`)
      }
      return `${tried.length} kinds are 400`
    },
  },
])
