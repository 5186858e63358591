import { appendFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { readInstance } from '../../src/cli/instance.ts'
import { variablesIn } from '../../src/cli/dev/envFile.ts'
import { readRun } from '../../src/cli/dev/tail.ts'
import { createClient } from '../../src/client/index.ts'
import { newId } from '../../src/ids.ts'
import { call, handle } from '../support/build.ts'
import { cli } from '../support/cli.ts'
import { type DevLine, folderOf, type RunningDev, save, startDev } from '../support/dev.ts'
import { type Api, openApi } from '../support/http.ts'
import { suite } from '../support/suite.ts'

const ORDERS = `import { context, fn } from 'svc'
export const onCreated = fn({ 'on-event': 'order:created', retry: { attempts: 1, delay: 50 } }, async (event) => {
  if (event.data.bad) throw new TypeError('bad order')
  return event.data
})
export const nightly = fn({ schedule: '0 3 * * *' }, async () => 1)
export const paid = fn({ webhook: { service: 'shop', path: '/paid' } }, async () => { throw new Error('seen by the developer') })
export const secret = async () => (await context('PAYMENT_KEY')).length
`
const versionIs = (version: number | string): string => `export const version = () => ${version}\n`

interface Context {
  folder: string
  dev: RunningDev
  api: Api
  functions: DevLine
}

const test = suite<Context>('svc dev', { timeoutMs: 60_000 })

test.before(async (context) => {
  const folder = folderOf({
    'package.json': '{"name":"@acme/orders"}',
    'src/orders.ts': ORDERS,
    'src/version.ts': versionIs(0),
    '.env.svc': 'PAYMENT_KEY=four\nOTHER_KEY=other-value\n',
  })
  const dev = startDev(folder)
  await dev.next('ready')
  const live = await dev.next('live')
  assert.equal((live['changes'] as { added: string[] }).added.length, 5)
  const functions = await dev.next('functions')
  const instance = readInstance(folder)
  assert.ok(instance)
  Object.assign(context, { folder, dev, functions, api: openApi(instance.url, instance.key) })
})

test.after(({ dev }) => dev.stop())

const refOf = (line: DevLine, name: string) =>
  (line['functions'] as Record<string, unknown>[]).find(({ fn }) => fn === name)

test('prints the functions with their triggers, the URLs of webhooks, and three commands', async (context) => {
  const { functions, api } = context
  assert.is(functions['project'], 'orders')
  assert.is(refOf(functions, 'orders/onCreated')?.['on_event'], 'order:created')
  assert.equal(refOf(functions, 'orders/nightly')?.['schedule'], { cron: '0 3 * * *', timezone: 'UTC' })
  const url = String(refOf(functions, 'orders/paid')?.['url'])
  assert.match((await api.send('POST', url)).text, 'seen by the developer')
  assert.equal(functions['commands'], [
    "npx svc send order:created '{}'",
    'npx svc run orders/secret',
    'npx svc runs',
  ])
})

test('announces itself in a file that only its user can read', ({ folder, dev }) => {
  assert.is(statSync(join(folder, '.svc/dev.json')).mode & 0o777, 0o600)
  const { project, pid } = readInstance(folder) ?? {}
  assert.equal([project, pid], ['orders', dev.process.pid])
})

test('is refused in a folder in which it runs', async ({ folder, dev }) => {
  const { code, err } = await cli(['dev', folder, '--port', '0'])
  assert.is(code, 1)
  assert.match(err, `svc dev is running in ${folder}`)
  assert.match(err, `(process ${dev.process.pid}): stop it first`)
})

test('makes a save live and prints the changes of functions', async ({ folder, dev, api }) => {
  save(folder, 'src/version.ts', `${versionIs(1)}export const more = () => 2\n`)
  const live = await dev.next('live')
  assert.equal(live['changes'], { added: ['version/more'], removed: [], changed: [] })
  assert.equal(live['paths'], ['src/version.ts'])
  assert.type(live['ms'], 'number')
  assert.is((await api.get<{ build_id: string }>('/projects/orders/builds/live')).build_id, live['build_id'])
  assert.is((await call(api, 'version/version')).result, 1)
})

test('prints runs as they end, and failures with their line, attempt and next attempt', async ({
  dev,
  api,
}) => {
  const good = await handle(api, 'order:created', { id: 1 })
  const done = await dev.next('run', ({ run_id }) => run_id === good.run_id)
  assert.equal(
    [done['fn'], done['cause'], done['status']],
    ['orders/onCreated', 'order:created', 'succeeded'],
  )
  await handle(api, 'order:created', { bad: true })
  const failed = await dev.next('run', ({ status }) => status === 'pending_retry')
  assert.equal([failed['attempt'], failed['attempts']], [1, 2])
  assert.ok(Date.parse(String(failed['retry_at'])) > 0)
  const { message, location } = failed['error'] as { message: string; location: Record<string, unknown> }
  assert.is(message, 'bad order')
  assert.equal([location['file'], location['line']], ['src/orders.ts', 3])
  const last = await dev.next('run', ({ status }) => status === 'failed')
  assert.equal([last['attempt'], last['retry_at']], [2, null])
})

/** Saves a broken file, and expects that the last good build remains. */
const refuses = async ({ folder, dev, api }: Context, content: string) => {
  const before = (await api.get<{ build_id: string }>('/projects/orders/builds/deployed')).build_id
  save(folder, 'src/broken.ts', content)
  const failed = await dev.next('failed')
  assert.is(failed['live'], before)
  assert.is((await api.get<{ build_id: string }>('/projects/orders/builds/deployed')).build_id, before)
  rmSync(join(folder, 'src/broken.ts'))
  assert.is((await dev.next('live'))['build_id'], before, 'nothing is uploaded')
  const [message] = failed['messages'] as Record<string, unknown>[]
  return message
}

test('prints an error of syntax at its line, while the last good build continues', async (context) => {
  const message = await refuses(context, 'export const a = 1\nexport const = 2\n')
  assert.equal(
    [message?.['file'], message?.['line'], message?.['column'], message?.['sourceLine']],
    ['src/broken.ts', 2, 14, 'export const = 2'],
  )
})

test('prints a refusal of the service at the declaration of the function', async (context) => {
  const message = await refuses(
    context,
    "import { fn } from 'svc'\nexport const late = fn({ 'on-events': 'a' }, async () => 1)\n",
  )
  assert.equal([message?.['file'], message?.['line'], message?.['column']], ['src/broken.ts', 2, 14])
  assert.match(String(message?.['text']), /^late: Expected the key on-event, got on-events/)
  const short = await refuses(
    context,
    "import { fn } from 'svc'\nexport const x = fn({ 'on-events': 'a' }, async () => 1)\n",
  )
  assert.equal([short?.['line'], short?.['column']], [2, 14]) // not the x of export
})

test('prints an error that a module throws when it is loaded at its line', async (context) => {
  const message = await refuses(context, "export const a = 1\nthrow new Error('while loading')\n")
  assert.equal(
    [message?.['file'], message?.['line'], message?.['sourceLine']],
    ['src/broken.ts', 2, "throw new Error('while loading')"],
  )
})

test('does not take a log of its own output in the folder for a save', async (context) => {
  const { folder, dev, api } = context
  const failures = () => dev.lines().filter(({ type }) => type === 'failed').length
  const before = failures()
  const log = (chunk: string) => {
    for (const name of ['dev.log', 'src/dev.log']) appendFileSync(join(folder, name), chunk)
  }
  dev.process.stdout?.on('data', log)
  try {
    save(folder, 'src/broken.ts', 'export const = 1\n')
    await dev.next('failed')
    const { run_id } = await handle(api, 'order:created', { id: 2 })
    await dev.next('run', (line) => line['run_id'] === run_id)
    rmSync(join(folder, 'src/broken.ts'))
    const live = await dev.next('live')
    assert.is(failures(), before + 1)
    assert.equal(live['paths'], ['src/broken.ts'])
  } finally {
    dev.process.stdout?.off('data', log)
  }
})

test('warns about a file that a function reads and the build does not contain', async ({
  folder,
  dev,
  api,
}) => {
  save(folder, 'src/notes/hello.txt', 'hello')
  save(
    folder,
    'src/reads.ts',
    `import { readFileSync } from 'node:fs'
export const reads = () => readFileSync(new URL('./notes/hello.txt', import.meta.url), 'utf8')
`,
  )
  const isOf = (ref: string) => (line: DevLine) => JSON.stringify(line['changes']).includes(ref)
  const live = await dev.next('live', isOf('reads/reads'))
  const [warning = ''] = live['warnings'] as string[]
  assert.match(
    warning,
    /^src\/reads\.ts:2:41: src\/notes\/hello\.txt is not in the build: add "notes\/hello\.txt" to svc\.assets/,
  )
  const failed = await call(api, 'reads/reads')
  assert.match(failed.error?.message ?? '', 'svc.assets')
  for (const path of ['src/notes', 'src/reads.ts']) rmSync(join(folder, path), { recursive: true })
  const next = await dev.next('live', isOf('reads/reads'))
  assert.equal(next['warnings'], [])
})

test('follows the atomic rename of an editor, and renamed and deleted modules', async (context) => {
  const { folder, dev, api } = context
  save(folder, 'src/.version.ts.swp', versionIs(2))
  renameSync(join(folder, 'src/.version.ts.swp'), join(folder, 'src/version.ts'))
  assert.equal((await dev.next('live'))['changes'], { added: [], removed: ['version/more'], changed: [] })
  assert.is((await call(api, 'version/version')).result, 2)
  renameSync(join(folder, 'src/version.ts'), join(folder, 'src/renamed.ts'))
  assert.equal((await dev.next('live'))['changes'], {
    added: ['renamed/version'],
    removed: ['version/version'],
    changed: [],
  })
  save(folder, 'src/deep/er/module.ts', versionIs(3))
  assert.equal((await dev.next('live'))['changes'], {
    added: ['deep.er.module/version'],
    removed: [],
    changed: [],
  })
  rmSync(join(folder, 'src/deep'), { recursive: true })
  assert.equal((await dev.next('live'))['changes'], {
    added: [],
    removed: ['deep.er.module/version'],
    changed: [],
  })
})

test('makes the last of a burst of saves live', async ({ folder, dev, api }) => {
  for (let version = 100; version <= 140; version++)
    writeFileSync(join(folder, 'src/renamed.ts'), versionIs(version))
  save(folder, 'src/last.ts', versionIs(141))
  await dev.next('live', ({ changes }) => (changes as { added: string[] }).added.includes('last/version'))
  assert.is((await call(api, 'renamed/version')).result, 140)
})

test('keeps context variables equal to the lines of .env.svc, and shows no values', async (context) => {
  const { folder, dev, api } = context
  assert.is((await call(api, 'orders/secret')).result, 4)
  await api.post('/projects/orders/context', { key: 'BY_HAND', value: 'x' })
  save(folder, '.env.svc', 'PAYMENT_KEY="eight888"\nNEW_KEY=1\n')
  const { set, removed } = await dev.next('secrets')
  assert.equal([set, removed], [['NEW_KEY', 'PAYMENT_KEY'], ['OTHER_KEY']])
  assert.is((await call(api, 'orders/secret')).result, 8)
  const keys = async () =>
    (await api.page<{ key: string }>('/projects/orders/context')).data.map(({ key }) => key)
  assert.equal((await keys()).sort(), ['BY_HAND', 'NEW_KEY', 'PAYMENT_KEY'])
  save(
    folder,
    '.env.svc',
    '# keys\n\nexport PAYMENT_KEY="eight888\nno line"\nother-value\nNEW_KEY=1\nYAML: x\n',
  )
  const messages = (await dev.next('failed'))['messages'] as { file: string; line: number }[]
  assert.equal(
    messages.map(({ file, line }) => [file, line]),
    [
      ['.env.svc', 5],
      ['.env.svc', 7],
    ],
  )
  save(folder, '.env.svc', '\uFEFFPAYMENT_KEY=other-value\nNEW_KEY=1\n')
  assert.equal((await dev.next('secrets'))['set'], ['PAYMENT_KEY'], 'an editor of Windows wrote the file')
  rmSync(join(folder, '.env.svc'))
  assert.equal((await dev.next('secrets'))['removed'], ['NEW_KEY', 'PAYMENT_KEY'])
  assert.equal(await keys(), ['BY_HAND'])
  assert.not.match(dev.out() + dev.err(), /eight888|other-value/)
})

test('deploys the code beside a wrong .env.svc, and names its lines until it is right', async (context) => {
  const { folder, dev, api } = context
  const text = (key: string) => `${key}=1\nPAYMENT_KEY=${'x'.repeat(40_000)}\n`
  const wrong = async () => {
    const { messages } = await dev.next('failed')
    return (messages as { text: string; file: string; line: number }[]).map(
      (each) => `${each.file}:${each.line}: ${each.text}`,
    )
  }
  const refusals = [
    '.env.svc:1: expected a key of 1 to 128 letters, digits, "_", "." and "-", beginning with a letter or "_" before =',
    '.env.svc:2: PAYMENT_KEY: expected at most 32768 bytes, got 40000',
  ]
  save(folder, '.env.svc', text('1A'))
  assert.equal(await wrong(), refusals)
  save(folder, 'src/version.ts', versionIs(500))
  await dev.next('live')
  assert.equal(await wrong(), refusals)
  assert.is((await call(api, 'version/version')).result, 500)
  save(folder, 'src/version.ts', 'export const version = (\n')
  const both = await wrong()
  assert.equal(both.slice(0, 2), refusals)
  assert.match(both[2] ?? '', 'src/version.ts:2')
  save(folder, '.env.svc', 'A=1\n')
  assert.equal((await dev.next('secrets'))['set'], ['A'])
  save(folder, 'src/version.ts', versionIs(501))
  await dev.next('live')
  assert.is((await call(api, 'version/version')).result, 501)
})

test('reads quotes in comments and within values of .env.svc as Node does', () => {
  const folder = folderOf({ '.env.svc': `# it='s a note\nA=1\nB=it's\nexport C = "two\nlines"\nD=4\n` })
  const variables = [...variablesIn(folder, '.env.svc')].map(([key, { value, line }]) => [key, value, line])
  assert.equal(variables, [
    ['A', '1', 2],
    ['B', "it's", 3],
    ['C', 'two\nlines', 4],
    ['D', '4', 6],
  ])
})

test('stops reading a run that does not exist', async ({ api }) => {
  const client = createClient({ url: api.url, token: api.key })
  assert.is(await readRun(client, newId(), new AbortController().signal), null)
})

test.run()
