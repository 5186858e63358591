import { newId } from '../../src/ids.ts'
import { call as callFunction, deploy, handle, type Run } from '../support/build.ts'
import type { Api } from '../support/http.ts'
import { type Attack, attackSuite } from './attack.ts'
import { limited } from './raw.ts'
import type { Target } from './target.ts'

const SECRET = 'planted-secret-of-project-a'

const evaluate = (api: Api, project: string, code: string, more: object = {}): Promise<Run> =>
  api.post(`/projects/${project}/eval`, { code, ...more })

/** Two projects of one environment with the same zip; the first has a secret in its process. */
const twins = async (target: Target): Promise<{ a: string; b: string; other: Api }> => {
  const { api } = target.attacker
  const files = {
    'main.ts': `import { context } from 'svc'
      export const attack = async () => ((globalThis as any).kept = await context('KEY')).length`,
  }
  const [a, b] = [`a-${newId()}`, `b-${newId()}`]
  await deploy(api, a, files)
  await deploy(api, b, files)
  await api.post(`/projects/${a}/context`, { key: 'KEY', value: SECRET })
  await handle(api, 'svc:call', { fn: 'main/attack', project: a, args: [] })
  return { a, b, other: await limited(target.attacker, { [`build:${b}`]: ['execute', 'read'] }) }
}

/** Fails if the run has the secret, in any form. */
const without = (secret: string, run: Run): string => {
  const text = JSON.stringify(run)
  if (text.includes(secret) || text.includes(secret.split('').reverse().join('')))
    throw new Error(`read ${text}`)
  return `${run.status} ${JSON.stringify(run.error?.message ?? run.result)}`
}

const READS_LATER = `
  import { context, fn } from 'svc'
  const seen: unknown[] = []
  export const attack = fn({ context: [] }, () => {
    const note = (value: unknown) => { if (typeof value === 'string' && value.includes('planted')) seen.push([...value].reverse().join('')) }
    const { parse } = JSON
    JSON.parse = (text: string, ...rest: any[]) => { note(text); return parse(text, ...rest) }
    const { get, set } = Map.prototype
    Map.prototype.get = function (key: any) { const value = get.call(this, key); note(value); return value }
    Map.prototype.set = function (key: any, value: any) { note(value); return set.call(this, key, value) }
    const { then } = Promise.prototype
    Promise.prototype.then = function (this: any, done: any, ...rest: any[]) { return then.call(this, done && ((value: any) => { note(value); return done(value) }), ...rest) } as any
    return 'patched'
  })
  export const pays = fn({ context: ['KEY'] }, async () => (await context('KEY')).length)
  export const report = fn({ context: [] }, () => ({ seen, kept: Object.keys(globalThis).length }))`

const attacks: Attack[] = [
  {
    id: 'A/07-same-hash',
    attempt: 'evaluate code in a project with the same zip, to read what the other project keeps in memory',
    severity: 'medium',
    run: async (target) => {
      const { a, b, other } = await twins(target)
      const inOther = (await other.send('POST', `/projects/${a}/eval`, { body: { code: '1' } })).status
      const run = await evaluate(other, b, `[...String(globalThis.kept ?? 'nothing')].reverse().join('')`)
      return `eval in the other project: ${inOther}; ${without(SECRET, run)}`
    },
  },
  {
    id: 'A/07-same-hash/repl',
    attempt: 'continue the REPL session of another project or of another credential',
    severity: 'medium',
    run: async (target) => {
      const { a, b, other } = await twins(target)
      await evaluate(target.attacker.api, a, `const typed = '${SECRET}'`, { repl_id: 'mine' })
      await evaluate(target.attacker.api, b, `const typed = '${SECRET}'`, { repl_id: 'mine' })
      return without(SECRET, await evaluate(other, b, 'typed', { repl_id: 'mine' }))
    },
  },
  {
    id: 'A/07-same-hash/environments',
    attempt: 'share a process with the same zip in another environment',
    severity: 'critical',
    run: async (target) => {
      const code = `export const attack = () => ((globalThis as any).mark ??= Math.random())`
      const marks = [target.attacker, target.victim].map(async ({ api }) => {
        await deploy(api, 'twin', { 'main.ts': code })
        return (await callFunction(api, 'main/attack')).result
      })
      const [one, other] = await Promise.all(marks)
      if (one === other) throw new Error('both run in one process')
      return 'two processes'
    },
  },
  {
    id: 'A/08-warm-state',
    attempt:
      'patch built-ins in a function without context, to read the secret of a later run of another function',
    severity: 'medium',
    run: async ({ attacker: { api } }) => {
      const project = `p-${newId()}`
      await deploy(api, project, { 'main.ts': READS_LATER })
      await api.post(`/projects/${project}/context`, { key: 'KEY', value: SECRET })
      const call = (fn: string) => handle(api, 'svc:call', { fn, project, args: [] })
      await call('main/attack')
      const paid = await call('main/pays')
      if (paid.result !== SECRET.length) throw new Error(`the later run: ${JSON.stringify(paid)}`)
      return without(SECRET, await call('main/report'))
    },
  },
  {
    id: 'A/08-warm-state/declared',
    attempt: 'read a variable that the function does not declare',
    severity: 'medium',
    run: async ({ attacker: { api } }) => {
      const project = `p-${newId()}`
      await deploy(api, project, {
        'main.ts': `import { context, fn } from 'svc'
          export const attack = fn({ context: ['OTHER'] }, async () => [...(await context('KEY'))].reverse().join(''))`,
      })
      await api.post(`/projects/${project}/context`, { key: 'KEY', value: SECRET })
      return without(SECRET, await handle(api, 'svc:call', { fn: 'main/attack', project, args: [] }))
    },
  },
  {
    id: 'A/08-warm-state/redeploy',
    attempt: 'leave something for the next build',
    severity: 'high',
    run: async ({ attacker: { api } }) => {
      const project = `p-${newId()}`
      const run = async (more: string) => {
        await deploy(api, project, {
          'main.ts': `${more}\nexport const attack = () => { const left = (globalThis as any).left ?? 'nothing'; (globalThis as any).left = 'something'; return left }`,
        })
        return (await handle(api, 'svc:call', { fn: 'main/attack', project, args: [] })).result
      }
      const found = [await run(''), await run('// another build')]
      if (found[1] !== 'nothing') throw new Error(`found ${JSON.stringify(found)}`)
      return `each build found ${found.join(', ')}`
    },
  },
  {
    id: 'B/03-permissions/laundering',
    attempt:
      'do by evaluated code what the credential may not: files, events, context, functions of other projects',
    severity: 'medium',
    run: async (target) => {
      const { api } = target.attacker
      const [shop, bank] = [`shop-${newId()}`, `bank-${newId()}`]
      await deploy(api, shop, { 'shop.ts': `export const price = () => 1` })
      await deploy(api, bank, { [`bank.ts`]: `export const transfer = () => 'went through'` })
      await api.post(`/projects/${shop}/context`, { key: 'KEY', value: 'went through' })
      await api.send('PUT', '/files/upload/salaries.txt', { body: 'went through' })
      const key = await limited(target.attacker, { [`build:${shop}`]: ['execute'] })
      const run = await evaluate(
        key,
        shop,
        `const tries = {
          context: () => context('KEY'), read: () => files.get('salaries.txt'), list: () => files.list(),
          write: () => files.put('new.txt', 'x'), large: () => files.put('new.txt', new Uint8Array(6 << 20)),
          remove: () => files.delete('salaries.txt'), send: () => send('order:paid'),
          control: () => send('svc:call', { fn: 'bank/transfer' }), run: () => run('bank/transfer'), call: () => call('bank/transfer'),
        };
        const outcomes = {};
        for (const [name, work] of Object.entries(tries)) outcomes[name] = await work().then(() => 'went through', (error) => error.code);
        outcomes`,
      )
      if (run.status !== 'succeeded' || JSON.stringify(run.result).includes('went through'))
        throw new Error(JSON.stringify(run.error ?? run.result))
      return JSON.stringify(run.result)
    },
  },
  {
    id: 'B/03-permissions/masking',
    attempt: 'publish a secret by result, error, output, event and argument of a run, plain or encoded',
    severity: 'medium',
    run: async ({ attacker: { api } }) => {
      const project = `p-${newId()}`
      await deploy(api, project, {
        'main.ts': `import { context, send, run } from 'svc'
          export const echo = (value: unknown) => value
          export const attack = async () => {
            const key = await context('KEY')
            console.log(key, Buffer.from('user:' + key).toString('base64'))
            await send('leak', { key, [key]: 1 })
            const echoed = await run('main/echo', key)
            const large = Array.from({ length: 5000 }, () => 'padding of a large result' + key)
            return { key, echoed, large, base64: Buffer.from(key).toString('base64'), url: encodeURIComponent(key), hex: Buffer.from(key).toString('hex'), json: JSON.stringify({ key }) }
          }`,
      })
      const secret = 'pl/nted "secret"+4711'
      await api.post(`/projects/${project}/context`, { key: 'KEY', value: secret })
      const run = await handle(api, 'svc:call', { fn: 'main/attack', project, args: [] })
      const full = await api.get<Run>(`/runs/${run.run_id}`)
      const logs = await api.get(`/runs/${run.run_id}/logs`)
      const events = await api.page('/events?event_type=leak')
      const text = JSON.stringify([full, logs, events])
      const bytes = Buffer.from(secret)
      const forms = [
        JSON.stringify(secret).slice(1, -1),
        secret,
        encodeURIComponent(secret),
        bytes.toString('base64'),
        bytes.toString('hex'),
      ]
      const found = forms.filter(
        (form) => text.includes(form) || text.includes(JSON.stringify(form).slice(1, -1)),
      )
      if (run.status !== 'succeeded' || found.length > 0) throw new Error(`found ${JSON.stringify(found)}`)
      return `none of ${forms.length} forms in result, output and events`
    },
  },
]

attackSuite('rights of functions and of evaluated code', attacks)
