import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Locator, Page } from 'playwright-core'
import * as assert from 'uvu/assert'
import { violationsOf } from '../support/axe.ts'
import { call, deploy, publish, upload } from '../support/build.ts'
import { type FaultProxy, openFaultProxy } from '../support/faultProxy.ts'
import {
  openDashboard,
  operatorTokenOf,
  signInAsOperator,
  type StartedDashboard,
} from '../support/openDashboard.ts'
import { openApi } from '../support/http.ts'
import { stories } from '../support/stories.ts'
import { until } from '../support/until.ts'
import { zipBuild } from '../support/zipBuild.ts'

interface Context extends StartedDashboard {
  proxy: FaultProxy
  page: Page
  /** The address of the dashboard through the proxy. */
  url: string
  run_id: string
}

interface Case {
  readonly path: string | ((context: Context) => string)
  /** The label of the button, the title of the dialog and the label of the button that sends it. */
  readonly label: string
  /** A text of the row or the card that has the button. */
  readonly row?: string
  /** What is written in the fields by their labels. */
  readonly fields?: Readonly<Record<string, string>>
  /** The labels of boxes that are checked. */
  readonly boxes?: readonly string[]
  readonly file?: () => Promise<{ name: string; mimeType: string; buffer: Buffer }>
  /** What is reported afterwards. */
  readonly done: RegExp
  readonly before?: (context: Context) => Promise<unknown>
}

const FILES = {
  'a.js': `
    import { fn } from 'svc'
    export const echo = (text) => text
    export const waits = () => new Promise((done) => setTimeout(done, 600_000))
    export const nightly = fn({ schedule: { cron: '0 3 1 1 *' } }, () => 1)
  `,
}
const MORE = { 'a.js': `${FILES['a.js']}; export const more = () => 1` }

const zipFile = async () => ({
  name: 'build.zip',
  mimeType: 'application/zip',
  buffer: (await zipBuild(MORE)).bytes,
})
const textFile = () =>
  Promise.resolve({ name: 'note.txt', mimeType: 'text/plain', buffer: Buffer.from('note') })

const put = ({ server: { api } }: Context, path: string) =>
  api.send('PUT', `/files/upload/${path}`, { body: Buffer.from('a') })

const operatorOf = ({ server }: Context) => {
  const operator = openApi(server.url, operatorTokenOf(server))
  return <T>(path: string, body: object) => operator.post<T>(`${server.url}/operator${path}`, body)
}
const createKey = async (context: Context, name: string) => {
  const { env_id } = await context.server.api.get<{ env_id: string }>('/env')
  return operatorOf(context)(`/envs/${env_id}/api-keys`, { name })
}
const createServiceKey = ({ server: { api } }: Context, name: string) =>
  api.post('/service-keys', { name, permissions: { 'event:*': ['create'] } })
const waitingRun = async ({ server: { api } }: Context) => {
  await api.post('/events', { event_type: 'svc:call', event_data: { fn: 'a/waits', args: [] } })
  return until(async () => (await api.page<{ run_id: string }>('/runs?fn=a/waits&status=running')).data[0])
}

const ORGS = '/operator?section=organizations'
const KEY = { 'API key': '' } // filled with that of the server

const CASES: readonly Case[] = [
  { path: '/runs?fn=a/echo', label: 'Replay 1', done: /^Replayed 1 run/ },
  {
    path: ({ run_id }) => `/runs/${run_id}`,
    label: 'Replay with edited input',
    done: /was called with the edited input/,
  },
  { path: '/runs?fn=a/waits', label: 'Cancel 1', done: /^Cancelled 1 run/, before: waitingRun },
  {
    path: '/runs?fn=a/waits&status=running',
    label: 'Cancel',
    done: /cancellation was requested/,
    before: waitingRun,
  },
  {
    path: '/events',
    label: 'Publish',
    fields: { 'Event type': 'dialog:sent', 'Data as JSON': '{"n": 1}' },
    done: /^Published/,
  },
  {
    path: '/functions?project=shop',
    label: 'Call',
    row: 'a/echo',
    fields: { 'Arguments as a JSON list': '["hi"]' },
    done: /a\/echo was called/,
  },
  { path: '/functions?project=shop', label: 'Run now', row: 'Active', done: /a\/nightly was started/ },
  { path: '/functions?project=shop', label: 'Pause', row: 'Active', done: /is paused/ },
  { path: '/builds?project=shop', label: 'Upload', file: zipFile, done: /is uploaded with 4 functions/ },
  {
    path: '/builds?project=later',
    label: 'Deploy',
    done: /is deployed/,
    before: async ({ server: { api } }) => upload(api, 'later', MORE),
  },
  {
    path: '/builds?project=gone',
    label: 'Delete',
    done: /^Deleted build/,
    before: async ({ server: { api } }) => upload(api, 'gone', MORE),
  },
  { path: '/files', label: 'Upload', file: textFile, done: /^Stored note.txt/ },
  {
    path: '/files',
    label: 'Delete',
    row: 'b.txt',
    done: /^Deleted b.txt/,
    before: (one) => put(one, 'b.txt'),
  },
  {
    path: '/secrets?project=shop',
    label: 'Create secret',
    fields: { Key: 'TOKEN', Value: 'hidden', Description: 'of the bank' },
    done: /^Created TOKEN/,
  },
  {
    path: '/secrets?project=shop',
    label: 'Replace',
    row: 'TOKEN',
    fields: { Value: 'other' },
    done: /^Replaced TOKEN/,
  },
  { path: '/secrets?project=shop', label: 'Delete', row: 'TOKEN', done: /^Deleted TOKEN/ },
  {
    path: '/keys',
    label: 'Create service key',
    fields: { Name: 'made here', ...KEY },
    boxes: ['event create'],
    done: /^Created the service key made here/,
  },
  {
    path: '/keys',
    label: 'Revoke',
    row: 'to revoke',
    done: /^Revoked to revoke/,
    before: (one) => createServiceKey(one, 'to revoke'),
  },
  { path: '/keys', label: 'Revoke all service keys', done: /^Revoked \d service keys?/ },
  {
    path: '/keys',
    label: 'Create session',
    fields: KEY,
    boxes: ['stream read'],
    done: /^Created the session/,
  },
  {
    path: '/keys',
    label: 'Revoke',
    row: 'project:*',
    done: /^Revoked the session/,
    before: ({ server: { api } }) => api.post('/sessions', { permissions: { 'project:*': ['read'] } }),
  },
  {
    path: '/keys',
    label: 'Create API key',
    fields: { Name: 'made by the operator' },
    boxes: ['run read'],
    done: /^Created the API key made by the operator/,
  },
  {
    path: '/keys',
    label: 'Disable',
    row: 'to disable',
    done: /^Disabled the API key/,
    before: (one) => createKey(one, 'to disable'),
  },
  {
    path: '/keys',
    label: 'Rotate',
    row: 'to rotate',
    done: /^Created the successor/,
    before: (one) => createKey(one, 'to rotate'),
  },
  {
    path: '/keys',
    label: 'Delete',
    row: 'to delete',
    done: /^Deleted the API key/,
    before: (one) => createKey(one, 'to delete'),
  },
  {
    path: '/domains',
    label: 'Register a domain',
    fields: { Domain: 'hooks.example.com' },
    done: /^Registered hooks.example.com/,
  },
  { path: '/domains', label: 'Delete', row: 'hooks.example.com', done: /^Deleted hooks.example.com/ },
  {
    path: ORGS,
    label: 'Create organization',
    fields: { Slug: 'acme', Name: 'Acme' },
    done: /^Created the organization acme/,
  },
  { path: ORGS, label: 'Change', row: 'acme', fields: { Name: ' Inc' }, done: /^Changed acme/ },
  {
    path: `${ORGS}&org=acme`,
    label: 'Create environment',
    fields: { Name: 'production' },
    done: /^Created the environment production/,
  },
  {
    path: `${ORGS}&org=acme`,
    label: 'Delete',
    row: 'Show API keys',
    fields: { 'Name of the environment': 'production' },
    done: /^Deleted the environment production/,
  },
  {
    path: ORGS,
    label: 'Delete',
    row: 'Empty Inc',
    done: /^Deleted empty/,
    before: (one) => operatorOf(one)('/orgs', { slug: 'empty', name: 'Empty Inc', plan: 'pro' }),
  },
  {
    path: '/operator?section=read-models',
    label: 'Rebuild',
    row: 'domains, version',
    done: /^The rebuild of domains/,
  },
  {
    path: '/operator?section=read-models',
    label: 'Rebuild all',
    boxes: ['Compare all documents first, and report those that differ'],
    done: /^The rebuild of all read models/,
  },
]

const story = stories<Context>('the dialogs of the dashboard, with the keyboard and a lost service', {
  prepare: async (context) => {
    const { server, chromium } = context
    const { hostname, port } = new URL(server.url)
    context.proxy = await openFaultProxy({ host: hostname, port: Number(port) })
    context.url = context.proxy.url(server.url)
    await deploy(server.api, 'shop', FILES)
    for (const name of ['later', 'gone']) await server.api.post('/projects', { name })
    context.run_id = (await call(server.api, 'a/echo', 'first')).run_id
    await publish(server.api, 'dialog:seen')
    const dashboard = await openDashboard(chromium, { ...server, url: context.url }, { path: ORGS })
    await signInAsOperator(dashboard)
    context.page = dashboard.page
  },
  end: async ({ proxy }) => proxy?.close(),
})

const isFocused = (target: Locator): Promise<boolean> => target.evaluate((own) => own.matches(':focus'))

/** Presses the key of the next element until the target has the focus. */
const tabTo = async (page: Page, target: Locator): Promise<void> => {
  for (let left = 150; left > 0; left--) {
    if (await isFocused(target)) return
    await page.keyboard.press('Tab')
  }
  throw new Error(`Expected Tab to reach ${String(target)}`)
}

const buttonOf = (page: Page, { label, row }: Case): Locator => {
  const main = page.getByRole('main')
  const place = row === undefined ? main : main.locator('tbody tr, article').filter({ hasText: row }).first()
  return place.getByRole('button', { name: label, exact: true }).first()
}

/** Writes in the fields of a dialog and returns what each of them has. */
const write = async (page: Page, dialog: Locator, given: Case, key: string): Promise<Map<string, string>> => {
  const written = new Map<string, string>()
  for (const label of given.boxes ?? []) {
    await tabTo(page, dialog.getByLabel(label, { exact: true }))
    await page.keyboard.press('Space')
  }
  for (const [label, text] of Object.entries(given.fields ?? {})) {
    const field = dialog.getByLabel(label).first()
    await tabTo(page, field)
    if (label.includes('JSON')) await page.keyboard.press('ControlOrMeta+a')
    await page.keyboard.type(text || key)
    written.set(label, await field.inputValue())
    assert.match(written.get(label) ?? '', text || key)
  }
  return written
}

/** Opens the dialog of a case with the keyboard. */
const open = async (context: Context, given: Case): Promise<Locator> => {
  const { page, url, proxy } = context
  await proxy.heal()
  await given.before?.(context)
  await page.goto(`${url}/ui${typeof given.path === 'string' ? given.path : given.path(context)}`)
  if (/^(?:Replay|Cancel) 1$/.test(given.label)) {
    await page.getByRole('main').locator('tbody tr').first().waitFor()
    await page.keyboard.press('j')
    await page.keyboard.press('x')
  }
  if (given.label === 'Cancel') {
    await page.getByRole('main').locator('tbody tr').first().waitFor()
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
  }
  const button = buttonOf(page, given)
  await button.waitFor()
  await tabTo(page, button)
  await page.keyboard.press('Enter')
  const dialog = page.getByRole('dialog', { name: given.label, exact: true })
  await dialog.waitFor()
  return dialog
}

for (const given of CASES)
  story(
    `${typeof given.path === 'string' ? given.path : '/runs/{id}'}: ${given.label} is sent with the keyboard, and again after a lost service`,
    async (context) => {
      const { page, proxy, server } = context
      const dialog = await open(context, given)
      await until(async () => (await dialog.getByText(/Loading…|Comparing…/).count()) === 0)
      assert.equal(await violationsOf(page), [])
      const written = await write(page, dialog, given, server.api.key)
      if (given.file) await dialog.locator('input[type=file]').setInputFiles(await given.file())
      const send = dialog.getByRole('button', { name: given.label, exact: true })
      await tabTo(page, send)
      proxy.refuse()
      await page.keyboard.press('Enter')
      await dialog.getByRole('alert').filter({ hasText: 'The service does not answer' }).last().waitFor()
      for (const [label, text] of written)
        assert.is(await dialog.getByLabel(label).first().inputValue(), text, label)
      assert.ok(await isFocused(send), 'the focus stays on the button that sends')
      assert.equal(await violationsOf(page), [])

      await proxy.heal()
      await page.getByText('Connection lost').waitFor({ state: 'detached' })
      await page.keyboard.press('Enter')
      await page.getByRole('status').filter({ hasText: given.done }).first().waitFor()
      await dialog.waitFor({ state: 'detached' })
      const token = page.getByRole('dialog').filter({ hasText: 'Copy the token now' })
      if (await token.count()) {
        await tabTo(page, token.getByRole('button', { name: 'Done' }))
        await page.keyboard.press('Enter')
        await token.waitFor({ state: 'detached' })
      }
      const place = await page.evaluate(
        `(() => { const { activeElement: on } = document; return on.closest('main') ? on.textContent : on.tagName })()`,
      )
      assert.is.not(place, 'BODY', 'the focus returns to where it was')
    },
  )

/** What the fields of a dialog have, in its order. */
const fieldsOf = (dialog: Locator): Promise<unknown> =>
  dialog.evaluate((own) =>
    [...own.querySelectorAll('input, select, textarea')].map((field) =>
      'checked' in field && field.type === 'checkbox' ? field.checked : field.value,
    ),
  )

/** The arguments of a call are kept, because a function is called again and again. */
const isFresh = ({ label, row, fields, boxes }: Case): boolean =>
  label !== 'Call' && row === undefined && (fields !== undefined || boxes !== undefined)

for (const given of CASES.filter(isFresh))
  story(`${given.label} keeps nothing of what was written before it was opened`, async (context) => {
    const { page, server } = context
    const dialog = await open(context, given)
    const first = await fieldsOf(dialog)
    await write(page, dialog, given, server.api.key)
    if (given.label === 'Publish') await dialog.getByLabel('Stream to continue').fill('a stream')
    assert.not.equal(await fieldsOf(dialog), first)
    await dialog.getByRole('button', { name: 'Back' }).click()
    await dialog.waitFor({ state: 'detached' })
    await buttonOf(page, given).click()
    await dialog.waitFor()
    assert.equal(await fieldsOf(dialog), first)
  })

story('every dialog of the dashboard is among these cases', async () => {
  const ui = join(import.meta.dirname, '../../src/ui')
  const source = globSync('**/*.tsx', { cwd: ui })
    .map((file) => readFileSync(join(ui, file), 'utf8'))
    .join('\n')
  const labels = [...source.matchAll(/<Action\s+label="([^"]+)"/g)].map(([, label = '']) => label)
  const isTried = (label: string) => CASES.some((one) => one.label === label)
  // They have no dialog, or are tried in a test of their own: defects.
  const others = ['Replay', 'Resume', 'Download', 'Verify now']
  assert.equal(
    [...new Set(labels)].filter((label) => !isTried(label) && !others.includes(label)),
    [],
  )
})

story('what a dialog shows is loaded when the service answers again', async (context) => {
  const { page, proxy, server } = context
  await upload(server.api, 'later', { 'b.js': 'export const other = () => 1' })
  for (const [path, label, text] of [
    ['/builds?project=later', 'Deploy', 'b/other'],
    [`/runs/${context.run_id}`, 'Replay with edited input', 'Input as JSON'],
  ] as const) {
    await proxy.heal()
    await page.goto(`${context.url}/ui${path}`)
    const button = page.getByRole('button', { name: label, exact: true }).first()
    await tabTo(page, button)
    proxy.refuse()
    await page.keyboard.press('Enter')
    const dialog = page.getByRole('dialog', { name: label })
    await dialog.getByRole('alert').filter({ hasText: 'The page tries again when it does.' }).waitFor()
    await proxy.heal()
    await dialog.getByText(text).waitFor()
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    assert.ok(await isFocused(button))
  }
})

story('the question about a link keeps the link until the service answers', async (context) => {
  const { page, proxy, server, url } = context
  await proxy.heal()
  const { ticket } = await server.api.post<{ ticket: string }>('/sign-in/tickets')
  await page.goto('about:blank')
  await page.goto(`${url}/ui/files#ticket=${ticket}`)
  const question = page.getByRole('dialog', { name: 'Sign in with the link?' })
  const use = question.getByRole('button', { name: 'Use the link' })
  await use.waitFor()
  await tabTo(page, use)
  proxy.refuse()
  await page.keyboard.press('Enter')
  await question.getByRole('alert').filter({ hasText: 'The service does not answer' }).waitFor()
  assert.ok(await isFocused(use))
  await proxy.heal()
  await page.getByText('Connection lost').waitFor({ state: 'detached' })
  await page.keyboard.press('Enter')
  await page.getByText('Signed in to the environment dev.').waitFor()
  await question.waitFor({ state: 'detached' })
})

story('a sign-in above the page is sent again after a lost service', async (context) => {
  const { page, proxy, server, url } = context
  await proxy.heal()
  await page.goto(`${url}/ui/secrets?project=shop`)
  const button = page.getByRole('button', { name: 'Create secret' })
  await tabTo(page, button)
  await page.keyboard.press('Enter')
  const dialog = page.getByRole('dialog', { name: 'Create secret' })
  await page.keyboard.type('KEPT')
  await server.api.remove('/sessions')
  await tabTo(page, dialog.getByLabel('Value'))
  await page.keyboard.type('hidden')
  await page.keyboard.press('Enter')
  const again = page.getByRole('dialog', { name: 'Your session has ended' })
  await again.waitFor()
  await page.keyboard.type(server.api.key)
  proxy.refuse()
  await page.keyboard.press('Enter')
  await again.getByRole('alert').filter({ hasText: 'The service does not answer' }).waitFor()
  await proxy.heal()
  await page.getByText('Connection lost').waitFor({ state: 'detached' })
  await page.keyboard.press('Enter')
  await again.waitFor({ state: 'detached' })
  assert.is(await dialog.getByLabel('Key').inputValue(), 'KEPT')
  assert.ok(await isFocused(dialog.getByLabel('Value')))
  await page.keyboard.press('Enter')
  await page.getByText('Created KEPT.').waitFor()
  await until(() => isFocused(button))
})

story.run()
