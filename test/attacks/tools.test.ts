import { newId } from '../../src/ids.ts'
import { deploy, handle, runsOf } from '../support/build.ts'
import { until } from '../support/until.ts'
import { TOOLS } from '../api/mcp/client.ts'
import { attackSuite } from './attack.ts'
import { cpuSecondsOf } from './cpu.ts'
import { allRefused, expected, limited } from './raw.ts'
import type { Target, Tenant } from './target.ts'

interface Replied {
  readonly status: number
  readonly text: string
  readonly session: string | null
}

/** Sends a message of MCP. */
const message = async (
  url: string,
  key: string,
  body: object,
  headers: Readonly<Record<string, string>> = {},
): Promise<Replied> => {
  const reply = await fetch(`${url}/mcp`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, ...body }),
  })
  return { status: reply.status, text: await reply.text(), session: reply.headers.get('Mcp-Session-Id') }
}

const calling = (name: string, args: object = {}) => ({
  method: 'tools/call',
  params: { name, arguments: args },
})

/** Runs of a function of the tenant, by status. */
const statusesOf = async ({ api }: Tenant, fn: string): Promise<string[]> =>
  (await api.page<{ status: string; fn: string | null }>('/runs?limit=100')).data
    .filter((run) => run.fn === fn)
    .map(({ status }) => status)

/** A tool with a schema for its argument `a`, and one without. */
const costly = (schema: string) => ({
  'main.js': `import { fn } from 'svc'
    const text = '"'.repeat(600)
    const nested = (depth, leaf) => depth === 0 ? leaf : [nested(depth - 1, leaf)]
    const times = (count, part) => Array.from({ length: count }, () => part)
    const a = ${schema}
    const tool = (properties) => fn({ mcp: { service: 'costly', description: 'Costs', input: { type: 'object', properties } } }, () => 1)
    export const plain = tool({})
    export const costly = tool({ a })`,
})

const nested = (depth: number, leaf: unknown): unknown => (depth === 0 ? leaf : [nested(depth - 1, leaf)])

/**
 * Processor time of a check of a mebibyte, which no other request gets a part of, beyond that of the same request to a tool
 * without a schema for the argument. On a slow machine, both take longer.
 */
const MOST_CPU_S = 0.5

/** Fails if the check of an argument against the schema of a tool takes too much time. */
const checkedSoon = async (
  { attacker: { api }, victim, server: { process: service } }: Target,
  schema: string,
  a: unknown,
): Promise<string> => {
  await deploy(api, `p-${newId()}`, costly(schema))
  const { result } = JSON.parse((await message(api.url, api.key, { method: 'tools/list' })).text) as {
    result: { tools: { name: string }[] }
  }
  const called = async (fn: string) => {
    const name = result.tools.find((tool) => tool.name.endsWith(fn))?.name ?? ''
    const before = cpuSecondsOf(service.pid)
    const { status, text } = await message(api.url, api.key, calling(name, { a }))
    const used = cpuSecondsOf(service.pid) - before
    expected(status === 200, text)
    return { used, text }
  }
  const plain = await called('plain')
  const { used, text } = await called('costly')
  await victim.api.get('/env')
  const check = Math.max(0, used - plain.used)
  expected(check < MOST_CPU_S, `the check took ${check.toFixed(1)} s of CPU`)
  return `${check.toFixed(1)} s of CPU: ${text.slice(0, 120)}`
}

attackSuite('tools of agents', [
  {
    id: 'B/02-isolation/tools',
    attempt: "another tenant's functions, runs and projects as tools and arguments of tools",
    severity: 'critical',
    run: async ({ attacker, victim }) => {
      const { url, key } = attacker.api
      const project = `p-${newId()}`
      await deploy(victim.api, project, TOOLS)
      const { run_id, event_id } = await handle(victim.api, 'order:placed', { planted: 'planted-value' })
      const tries: Record<string, object> = {
        list: { method: 'tools/list' },
        function: calling('shop_refund', { order: '1' }),
        'function by its path': calling('shop/refund', { order: '1' }),
        run: calling('get_run', { run_id }),
        why: calling('why', { run_id }),
        replay: calling('replay_runs', { run_ids: [run_id], confirm: true }),
        runs: calling('list_runs', { project, limit: 100 }),
        'runs of an event': calling('list_runs', { event_id }),
        events: calling('search_events', { event_type: 'order:placed', limit: 100 }),
        functions: calling('list_functions', { project }),
        status: calling('deploy_status', { project }),
        send: calling('send_event', { event_type: 'svc:replay', event_data: { run_id } }),
        cancel: { method: 'notifications/cancelled', params: { requestId: 1 } },
      }
      for (const [what, body] of Object.entries(tries)) {
        const { text } = await message(url, key, body, { 'Mcp-Session-Id': newId() })
        expected(
          !/planted-value|refund|shop\.js/.test(text.replace(/no tool[^"]*"[^"]*"/, '')),
          `${what}: ${text.slice(0, 300)}`,
        )
      }
      const runs = await runsOf(victim.api, event_id ?? '')
      expected(runs.length === 1, `${runs.length} runs of the event`)
      return `${Object.keys(tries).length} messages show and start nothing of the other environment`
    },
  },
  {
    id: 'B/02-isolation/tools/cancel',
    attempt: 'cancel a call of another credential by its session and the number of its request',
    severity: 'medium',
    run: async ({ attacker }) => {
      const { url, key } = attacker.api
      await deploy(attacker.api, 'tools', TOOLS)
      const other = await limited(attacker, { 'mcp:*': ['execute'] })
      const { session } = await message(url, key, {
        method: 'initialize',
        params: { protocolVersion: '2025-06-18' },
      })
      const list = JSON.parse((await message(url, key, { method: 'tools/list' })).text) as {
        result: { tools: { name: string }[] }
      }
      const name = list.result.tools.find((tool) => tool.name.includes('waits'))?.name ?? ''
      const headers = { 'Mcp-Session-Id': session ?? '' }
      const waiting = message(url, key, { ...calling(name), id: 7 }, headers)
      await until(async () => (await statusesOf(attacker, 'shop/waits')).includes('running'))
      const cancel = { method: 'notifications/cancelled', params: { requestId: 7 }, id: undefined }
      const { status } = await message(url, other.key, cancel, headers)
      const statuses = await statusesOf(attacker, 'shop/waits')
      expected(statuses.includes('running'), `the run of the other credential is ${statuses.join()}`)
      await message(url, key, cancel, headers)
      await waiting
      return `the notification of another credential is ${status} and has no effect`
    },
  },
  {
    id: 'B/16-rotation/revocation/tools',
    attempt: 'follow the progress of a tool after the credential was revoked',
    severity: 'high',
    run: async ({ attacker }) => {
      const { url } = attacker.api
      await deploy(attacker.api, 'tools', TOOLS)
      const { session_id, token } = await attacker.api.post<{ session_id: string; token: string }>(
        '/sessions',
        {
          permissions: { 'mcp:*': ['execute'] },
        },
      )
      const list = JSON.parse((await message(url, token, { method: 'tools/list' })).text) as {
        result: { tools: { name: string }[] }
      }
      const name = list.result.tools.find((tool) => tool.name.includes('asks'))?.name ?? ''
      const path = `answer-${newId()}`
      const reply = await fetch(`${url}/mcp`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${token}`, Accept: 'application/json, text/event-stream' },
        body: JSON.stringify({
          jsonrpc: '2.0',
          id: 1,
          method: 'tools/call',
          params: { name, arguments: { path }, _meta: { progressToken: 1 } },
        }),
      })
      const reader = reply.body?.getReader()
      await reader?.read()
      await attacker.api.remove(`/sessions/${session_id}`)
      let rest = ''
      for (let part = await reader?.read(); part && !part.done; part = await reader?.read())
        rest += Buffer.from(part.value).toString()
      await attacker.api.send('PUT', `/files/upload/${path}`, { body: 'x' })
      expected(!rest.includes('answered'), `the stream continued: ${rest}`)
      return allRefused(
        { 'the next message': (await message(url, token, { method: 'tools/list' })).status },
        [401],
      )
    },
  },
  {
    id: 'B/08-bodies/tools',
    attempt: 'occupy the service with the check of a mebibyte of arguments against a costly schema',
    severity: 'high',
    run: (target) =>
      checkedSoon(
        target,
        `{ type: 'array', items: { anyOf: [{ enum: [text, text] }, { const: text }, { properties: { a: { const: text } }, required: ['a'] }, true] } }`,
        Array.from({ length: 490_000 }, () => 1),
      ),
  },
  {
    id: 'B/08-bodies/tools/deep',
    attempt: 'occupy the service with the comparison of nine thousand deep values with deep constants',
    severity: 'high',
    run: (target) =>
      checkedSoon(
        target,
        `{ type: 'array', items: { anyOf: [...times(9, { const: nested(55, 3) }), true] } }`,
        Array.from({ length: 9300 }, () => nested(55, 2)),
      ),
  },
  {
    id: 'B/08-bodies/tools/shown',
    attempt:
      'occupy the service with the messages of 380 alternatives that a list with a large object does not match',
    severity: 'high',
    run: (target) =>
      checkedSoon(target, `{ anyOf: [...times(380, { type: 'null' }), true] }`, [
        Object.fromEntries(Array.from({ length: 100_000 }, (_, n) => [`k${n.toString(36)}`, 0])),
      ]),
  },
  {
    id: 'B/01-auth/tickets',
    attempt: 'redeem a sign-in ticket twenty times at once, a second time, and one of another form',
    severity: 'high',
    run: async ({ attacker, server: { url } }) => {
      const { ticket } = await attacker.api.post<{ ticket: string }>('/sign-in/tickets')
      const redeem = async (given: string) =>
        (
          await fetch(`${url}/v1/sign-in`, {
            method: 'POST',
            headers: {
              'Svc-Dashboard': '1',
              'Sec-Fetch-Site': 'same-origin',
              'Content-Type': 'application/json',
            },
            body: JSON.stringify({ ticket: given }),
          })
        ).status
      const at_once = await Promise.all(Array.from({ length: 20 }, () => redeem(ticket)))
      const accepted = at_once.filter((status) => status === 200).length
      expected(accepted === 1, `${accepted} of 20 were accepted`)
      const outcomes = {
        again: await redeem(ticket),
        'other case': await redeem(ticket.toUpperCase()),
        cut: await redeem(ticket.slice(0, -1)),
        'a session': await redeem(
          (await attacker.api.post<{ token: string }>('/sessions', { permissions: {} })).token,
        ),
        'the key': await redeem(attacker.api.key),
        nothing: await redeem(''),
      }
      return `one of 20 at once; ${allRefused(outcomes, [400, 401])}`
    },
  },
])
