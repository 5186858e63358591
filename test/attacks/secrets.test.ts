import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { newApiToken } from '../../src/access/tokens.ts'
import { newId } from '../../src/ids.ts'
import { newServiceKey, newSession } from '../api/issuing.ts'
import { deploy, handle, type Run, type Webhook } from '../support/build.ts'
import { openApi } from '../support/http.ts'
import { spawnServer } from '../support/server.ts'
import { until } from '../support/until.ts'
import { attackSuite } from './attack.ts'
import { descendantsOf, environOf, limitOf, linksOf, argumentsOf } from './processes.ts'
import type { Target } from './target.ts'

/** A function that receives every kind of secret, and returns how many arrived. */
const KEEPER = `
  import { context, fn } from 'svc'
  export const hook = fn(
    { webhook: { service: 'bank', path: '/paid', auth: 'required' }, 'secret-headers': ['x-signature'] },
    async ({ headers, auth }) => [headers.cookie, headers['x-signature'], auth, await context('KEY')].filter(Boolean).length,
  )
`

/** Every form in which a secret could be stored as it is. */
const formsOf = (secret: string): Buffer[] => [
  Buffer.from(secret),
  Buffer.from(Buffer.from(secret).toString('base64')),
  Buffer.from(Buffer.from(secret).toString('hex')),
  Buffer.from(secret, 'utf16le'),
]

/** The files of a directory, also in its folders. */
const filesIn = (dir: string): string[] =>
  readdirSync(dir, { recursive: true, encoding: 'utf8' })
    .map((name) => join(dir, name))
    .filter((path) => statSync(path, { throwIfNoEntry: false })?.isFile())

/** The content of a file of a service that runs; empty if the service has removed the file meanwhile. */
const contentOf = (path: string): Buffer => {
  try {
    return readFileSync(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return Buffer.alloc(0)
    throw error
  }
}

const contains = (bytes: Buffer, secret: string): boolean =>
  formsOf(secret).some((form) => bytes.includes(form))

/** Plants a secret of each kind through the API. Resolves with all of them, by kind. */
const plant = async ({ attacker, operator, server }: Target): Promise<Record<string, string>> => {
  const { api, env_id } = attacker
  const planted = (kind: string) => `planted-${kind}-${newId()}`
  const secrets = {
    variable: planted('variable'),
    replacedVariable: planted('replaced'),
    deletedVariable: planted('deleted'),
    metadata: planted('metadata'),
    cookie: planted('cookie'),
    signature: planted('signature'),
  }
  await deploy(api, 'keeper', { 'main.ts': KEEPER })
  await api.post('/projects/keeper/context', { key: 'KEY', value: secrets.replacedVariable })
  await api.send('PUT', '/projects/keeper/context/KEY', {
    body: { value: secrets.variable, description: '' },
  })
  await api.post('/projects/keeper/context', { key: 'GONE', value: secrets.deletedVariable })
  await api.remove('/projects/keeper/context/GONE')
  const { token } = await operator.post<{ token: string }>(`${server.url}/operator/envs/${env_id}/api-keys`, {
    name: 'planted',
  })
  const session = await newSession(api, { '*:*': ['*'] })
  const keyed = { body: { permissions: { 'env:*': ['read'] } }, headers: { 'Idempotency-Key': newId() } }
  const { json } = await api.send('POST', '/sessions', keyed)
  const serviceKey = await newServiceKey(
    api,
    { 'webhook:*': ['execute'] },
    { metadata: { note: secrets.metadata } },
  )
  const [webhook] = (await api.page<Webhook>('/projects/keeper/webhooks')).data
  const { status, text } = await openApi(server.url, serviceKey.token).send('POST', webhook?.url ?? '', {
    headers: { cookie: secrets.cookie, 'x-signature': secrets.signature },
    body: {},
  })
  if (status !== 200) throw new Error(`Expected the webhook to be called, got ${status} ${text}`)
  const last = (path: string): string => path.split(/[_/]/).at(-1) ?? ''
  return {
    ...secrets,
    apiKey: last(api.key),
    createdKey: last(token),
    session: last(session.token),
    keyedSession: last((json as { data: { token: string } }).data.token),
    serviceKey: last(serviceKey.token),
    webhook: last(webhook?.url ?? ''),
    operator: last(operator.key),
  }
}

/** The secrets that an operator can set, as variables of the environment. */
const newSecrets = () => ({
  SVC_API_KEY: newApiToken(newId()),
  SVC_OPERATOR_TOKEN: `operator-${newId()}-${newId()}`,
  SVC_MASTER_KEY: Buffer.from(newId()).subarray(0, 32).toString('base64'),
})

const CORE = 'Max core file size'

/** Processes that this one starts inherit the limit, as they do from a shell. */
const setCoreLimit = (limit: string): void =>
  void execFileSync('prlimit', [`--core=${limit}`, '--pid', String(process.pid)])

/** The forms in which replies could reveal the inside of the service. */
const INSIDE = [/\bat .+:\d+:\d+/, /node_modules/, /\/src\/\w+/, /SQLITE|SELECT |INSERT /, /ENOENT|EACCES/]
const FORGED = '2026-01-01T00:00:00.000Z error forged'

attackSuite('secrets at rest', [
  {
    id: 'B/13-secrets/disk',
    attempt:
      'find tokens, context values, service-key metadata, masked headers or webhook tokens in the data directory, the log or the output of runs',
    severity: 'high',
    async run(target) {
      const secrets = await plant(target)
      const { dataDir, output } = target.server
      const own = readFileSync(join(dataDir, 'secrets.json'), 'utf8')
      for (const file of await until(() => filesIn(dataDir))) {
        const bytes = contentOf(file)
        for (const [kind, secret] of Object.entries(secrets))
          if (contains(bytes, secret) && !(own.includes(secret) && file.endsWith('secrets.json')))
            throw new Error(`${kind} is in ${file}`)
        const { master_key } = JSON.parse(own) as { master_key: string }
        if (
          !file.endsWith('secrets.json') &&
          (bytes.includes(master_key) || bytes.includes(Buffer.from(master_key, 'base64')))
        )
          throw new Error(`the master key is in ${file}`)
      }
      const printed = Buffer.from(output.join('').replace(/^ {2}(API key|Operator token) .*$/gm, ''))
      for (const [kind, secret] of Object.entries(secrets))
        if (contains(printed, secret)) throw new Error(`${kind} is in the log`)
      for (const { run_id } of (await target.attacker.api.page<Run>('/runs?limit=100')).data) {
        const shown = await target.attacker.api.send('GET', `/runs/${run_id}`)
        const logs = await target.attacker.api.send('GET', `/runs/${run_id}/logs`)
        for (const [kind, secret] of Object.entries(secrets))
          if (`${shown.text}${logs.text}`.includes(secret)) throw new Error(`${kind} is in the run ${run_id}`)
      }
      return `${Object.keys(secrets).length} kinds of secrets are nowhere in plain text`
    },
  },
  {
    id: 'B/13-secrets/disk/log',
    attempt:
      'read SVC_API_KEY, SVC_OPERATOR_TOKEN and SVC_MASTER_KEY of the environment in the log or in the data directory',
    severity: 'medium',
    async run({ tier }) {
      const env = newSecrets()
      const server = await spawnServer({ env: { SVC_SANDBOX: tier, ...env } })
      try {
        for (const [name, secret] of Object.entries(env)) {
          if (server.output.join('').includes(secret)) throw new Error(`${name} is in the log`)
          for (const file of await until(() => filesIn(server.dataDir)))
            if (contains(contentOf(file), secret)) throw new Error(`${name} is in ${file}`)
        }
        return 'neither printed nor stored'
      } finally {
        await server.end('SIGKILL')
      }
    },
  },
  {
    id: 'B/13-secrets/children',
    attempt:
      'read a secret of the service in the arguments, the environment or the open files of its child processes',
    severity: 'critical',
    async run({ tier }) {
      const env = newSecrets()
      const server = await spawnServer({ env: { SVC_SANDBOX: tier, ...env } })
      try {
        const api = openApi(server.url, env.SVC_API_KEY)
        await deploy(api, 'p', { 'main.ts': 'export const f = () => 1' })
        await handle(api, 'svc:call', { fn: 'main/f', project: 'p', args: [] })
        const children = descendantsOf(server.process.pid ?? 0)
        if (children.length === 0) throw new Error('Expected a child process, got none')
        for (const pid of children) {
          const known = `${argumentsOf(pid)}\n${environOf(pid)}`
          for (const [name, secret] of Object.entries(env))
            if (known.includes(secret)) throw new Error(`${name} is visible in process ${pid}`)
          const open = linksOf(pid).filter((path) =>
            /(log|index|read-models|lock)\.db|secrets\.json/.test(path),
          )
          if (open.length > 0) throw new Error(`process ${pid} has ${open.join(', ')} open`)
        }
        return `${children.length} processes have no secret and no file of the service`
      } finally {
        await server.end('SIGKILL')
      }
    },
  },
  {
    id: 'B/13-secrets/core',
    attempt:
      'end a process of the service so that its core dump, with the master key, is written to the disk',
    severity: 'medium',
    async run({ tier }) {
      setCoreLimit('unlimited')
      const server = await spawnServer({ env: { SVC_SANDBOX: tier } })
      setCoreLimit('0:unlimited')
      try {
        const pid = server.process.pid ?? 0
        await until(() => limitOf(pid, CORE) === '0')
        await deploy(server.api, 'p', { 'main.ts': 'export const f = () => 1' })
        await handle(server.api, 'svc:call', { fn: 'main/f', project: 'p', args: [] })
        for (const child of descendantsOf(pid)) {
          const limit = limitOf(child, CORE)
          if (limit !== '0' && limit !== null) throw new Error(`the process ${child} may dump ${limit} bytes`)
        }
        return 'the service and its children may not dump core'
      } finally {
        await server.end('SIGKILL')
      }
    },
  },
  {
    id: 'B/13-secrets/modes',
    attempt: 'read files of a new data directory as another user',
    severity: 'medium',
    run: ({ server }) => Promise.resolve(closedTo(server.dataDir)),
  },
  {
    id: 'B/13-secrets/modes/existing',
    attempt: 'read files of a data directory that existed with mode 755, as another user',
    severity: 'low',
    async run({ tier, server }) {
      const dataDir = join(server.dataDir, '..', `svc-volume-${newId()}`)
      mkdirSync(dataDir)
      chmodSync(dataDir, 0o755)
      const other = await spawnServer({ dataDir, env: { SVC_SANDBOX: tier } })
      try {
        return closedTo(dataDir)
      } finally {
        await other.end('SIGKILL')
        rmSync(dataDir, { recursive: true })
      }
    },
  },
  {
    id: 'B/13-secrets/errors',
    attempt: 'learn paths, stacks, SQL or other tenants from errors; forge lines of the log',
    severity: 'medium',
    async run({ attacker: { api }, victim, server }) {
      const paths = [
        `/projects/${newId()}`,
        '/projects/%00',
        `/projects/x%0a${encodeURIComponent(FORGED)}`,
        '/runs?limit=-1',
        `/runs?status=${encodeURIComponent(`x\n${FORGED}`)}`,
        `/streams/${newId()}/subscribe?from=x`,
        '/files?prefix=../../../etc',
        `/env/subscribe?from=${'z'.repeat(50)}`,
      ]
      const replies = [
        ...(await Promise.all(paths.map((path) => api.send('GET', path)))),
        await api.send('POST', '/projects', { body: { name: `x\n${FORGED}` } }),
        await api.send('POST', '/projects', { body: '{"name":' }),
        await api.send('POST', '/events', { body: { event_type: `x\n${FORGED}`, event_data: null } }),
        await api.send('GET', '/env', { headers: { 'x-request-id': `x ${FORGED}` } }),
        await openApi(server.url, `svc_${newId()}_${FORGED.replaceAll(' ', '')}`).send('GET', '/env'),
      ]
      await deploy(api, 'forger', {
        'main.ts': `export const attack = () => { console.log(${JSON.stringify(`x\n${FORGED}`)}); throw new Error(${JSON.stringify(`x\n${FORGED}`)}) }`,
      })
      await handle(api, 'svc:call', { fn: 'main/attack', project: 'forger', args: [] })
      const inside = [
        ...INSIDE,
        new RegExp(server.dataDir),
        new RegExp(victim.org),
        new RegExp(victim.env_id),
      ]
      for (const { status, text } of replies)
        for (const pattern of inside)
          if (pattern.test(text)) throw new Error(`a reply ${status} contains ${pattern}: ${text}`)
      const forged = server.output
        .join('')
        .split('\n')
        .filter((line) => line.startsWith(FORGED))
      if (forged.length > 0) throw new Error(`forged: ${forged[0]}`)
      return `${replies.length} replies (${[...new Set(replies.map(({ status }) => status))].join(', ')}) name nothing of the inside; no line was forged`
    },
  },
  {
    id: 'B/13-secrets/paths',
    attempt:
      'learn the path of the data directory from user code: the working directory, stacks, modules, errors',
    severity: 'low',
    async run({ run, server }) {
      const { result, error } = await run(`
        export const attack = async () => {
          const seen = [process.cwd(), new Error('x').stack, import.meta.url, process.execPath, ...process.argv, ...process.execArgv]
          seen.push(JSON.stringify(process.env))
          try { await import('./none.ts') } catch (error) { seen.push(error.stack) }
          try { (await import('node:fs')).readFileSync('/none') } catch (error) { seen.push(error.stack) }
          return seen
        }
      `)
      const seen = JSON.stringify([result, error])
      if (seen.includes(server.dataDir)) throw new Error(`the function sees ${seen.slice(0, 300)}`)
      return 'user code sees no path of the data directory'
    },
  },
])

/** Returns how the directory is closed to other users; throws if an entry is not. */
const closedTo = (dataDir: string): string => {
  const mode = statSync(dataDir).mode & 0o777
  if (mode !== 0o700) throw new Error(`the data directory has mode ${mode.toString(8)}`)
  const modeOf = (name: string) => statSync(join(dataDir, name), { throwIfNoEntry: false })?.mode ?? 0
  const open = readdirSync(dataDir).filter((name) => modeOf(name) & 0o077)
  if (open.length > 0) throw new Error(`other users may access ${open.join(', ')}`)
  return `the directory has mode 700, its ${readdirSync(dataDir).length} entries have 600 or 700`
}
