import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'

export interface Connected {
  readonly client: Client
  readonly transport: StreamableHTTPClientTransport
}

/** Connects the client of the official SDK. */
export const connect = async (url: string, key: string): Promise<Connected> => {
  const transport = new StreamableHTTPClientTransport(new URL(`${url}/mcp`), {
    requestInit: { headers: { Authorization: `Bearer ${key}` } },
  })
  const client = new Client({ name: 'test', version: '1' })
  await client.connect(transport)
  return { client, transport }
}

export interface Called {
  readonly content: readonly { readonly text: string }[]
  readonly structuredContent?: Readonly<Record<string, unknown>>
  readonly isError?: boolean
  readonly _meta?: Readonly<Record<string, unknown>>
}

/** Calls a tool. */
export const callTool = async (client: Client, name: string, args: object = {}): Promise<Called> =>
  (await client.callTool({ name, arguments: { ...args } })) as unknown as Called

export const textOf = ({ content }: Called): string => content.map(({ text }) => text).join('\n')

export const TOOLS = {
  'shop.js': `
import { setTimeout } from 'node:timers/promises'
import { fn, emit, files, currentRun } from 'svc'
const input = {
  type: 'object',
  properties: { order: { type: 'string', description: 'The id' }, cents: { type: 'integer', minimum: 1 } },
  required: ['order'],
  additionalProperties: false,
}
export const refund = fn({ mcp: { service: 'shop', description: 'Refunds an order', input } }, (given) => ({ refunded: given }))
export const count = fn({ mcp: { service: 'shop', description: 'Counts' } }, async ({ to = 3 }) => {
  for (let n = 1; n <= to; n++) await emit('number', { n })
  return to
})
export const burst = fn({ mcp: { service: 'shop', description: 'Bursts' } }, async ({ of }) => {
  await Promise.all(Array.from({ length: of }, (_, n) => emit('number', { n, text: 'x'.repeat(5000) })))
})
export const asks = fn({ mcp: { service: 'shop', description: 'Asks' } }, async ({ path }) => {
  await emit('question', path)
  for (;;) {
    if ((await files.list({ prefix: path })).length > 0) return 'answered'
    await setTimeout(10, null, { signal: currentRun().signal })
  }
})
export const fails = fn({ mcp: { service: 'shop', description: 'Fails' } }, () => {
  throw new TypeError('Sold out')
})
export const waits = fn({ mcp: { service: 'shop', description: 'Waits' } }, () =>
  setTimeout(60_000, null, { signal: currentRun().signal }))
export const large = fn({ mcp: { service: 'shop', description: 'Large' } }, ({ size }) => ({ text: 'x'.repeat(size) }))
export const books = fn({ mcp: { service: 'ledger', description: 'Books' } }, () => 'booked')
export const placed = fn({ 'on-event': 'order:placed' }, ({ data }) => data)
export const prints = (count) => {
  for (let n = 0; n < count; n++) console.log('line ' + n)
}
`,
}
