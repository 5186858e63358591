import type { Figure } from './figure.ts'
import { load } from './load.ts'
import { BenchServer } from './server.ts'

export const HOOK = {
  'hook.js':
    "import { fn } from 'svc'\nexport const hook = fn({ webhook: { service: 'bench', path: '/hook' } }, () => ({ status: 200, body: 1 }))\n",
}

/** The complete round trip of a webhook: request, run in a child process, terminal fact, reply. */
export const webhook = async (): Promise<Figure[]> => {
  const server = await BenchServer.start()
  try {
    return await webhookOn(server, 20_000)
  } finally {
    await server.stop()
  }
}

/** `alone`: the number of calls that are made one after the other. */
export const webhookOn = async (
  server: BenchServer,
  calls: number,
  alone = calls / 10,
): Promise<Figure[]> => {
  const { '/hook': url = '' } = await server.deploy(HOOK)
  await load({ url, body: '{}', connections: 8, requests: Math.max(calls / 8, alone) })
  const one = await load({ url, body: '{}', connections: 1, requests: alone })
  const many = await load({ url, body: '{}', connections: 64, requests: calls })
  if (one.failed + many.failed > 0) throw new Error(`${one.failed + many.failed} calls failed`)
  return [
    { what: 'webhook round trip p50, 1 connection', value: one.p50, unit: 'ms', atMost: 1.5 },
    { what: '  p99', value: one.p99, unit: 'ms' },
    { what: 'webhooks, 64 connections', value: many.perSecond, unit: 'per s', atLeast: 3000 },
    { what: '  p50', value: many.p50, unit: 'ms' },
  ]
}
