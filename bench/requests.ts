import type { Figure } from './figure.ts'
import { load } from './load.ts'
import { BenchServer } from './server.ts'

const REQUESTS = 60_000

/** The cheapest request that authenticates, checks a permission and reads a read model: one project by its id. */
export const requests = async (): Promise<Figure[]> => {
  const server = await BenchServer.start()
  try {
    const { project_id } = await server.api<{ project_id: string }>('POST', '/projects', { name: 'one' })
    const wanted = {
      url: `${server.url}/v1/projects/${project_id}`,
      method: 'GET',
      headers: { Authorization: `Bearer ${server.key}` },
      connections: 64,
    }
    await load({ ...wanted, requests: REQUESTS / 4 })
    const cpu = server.cpuMs()
    const { perSecond, p50, p99, failed } = await load({ ...wanted, requests: REQUESTS })
    if (failed > 0) throw new Error(`${failed} requests failed`)
    return [
      { what: 'GET /v1/projects/{id}, 64 connections', value: perSecond, unit: 'per s', atLeast: 12_000 },
      { what: '  CPU time of the server', value: ((server.cpuMs() - cpu) * 1000) / REQUESTS, unit: 'us' },
      { what: '  p50', value: p50, unit: 'ms' },
      { what: '  p99', value: p99, unit: 'ms' },
    ]
  } finally {
    await server.stop()
  }
}
