import { until } from '../support/until.ts'
import { call, memorySuite } from './memory.ts'

memorySuite('memory of the service: runs', [
  {
    id: 'B/08-bodies/many-results',
    attempt: 'return eight results of small objects at once, and await eight results of 6 MiB in one run',
    severity: 'high',
    tried: async ({ api }) => {
      const runs = await Promise.all(Array.from({ length: 8 }, () => call(api, 'large', 5)))
      const awaited = await call(api, 'awaits', 8, 5.9)
      const ends = runs.map(({ status }) => status)
      return `${new Set(ends).size} kinds of ends, ${JSON.stringify(awaited.result)} results awaited`
    },
  },
  {
    id: 'A/24-unread-replies/memory',
    attempt: 'read a file of a mebibyte sixty times at once from functions',
    severity: 'high',
    tried: async ({ api }) => {
      const runs = await Promise.all(Array.from({ length: 4 }, () => call(api, 'reads', 15)))
      return runs.map(({ status }) => status).join(', ')
    },
  },
  {
    id: 'B/11-amplification/small-objects',
    attempt: 'publish three thousand events of 6 KB with two thousand empty objects',
    severity: 'high',
    tried: async ({ api }) => {
      let left = 3000
      const event_data = Array.from({ length: 2000 }, () => ({}))
      const publish = async () => {
        while (left-- > 0) await api.send('POST', '/events', { body: { event_type: 'none', event_data } })
      }
      await Promise.all(Array.from({ length: 8 }, publish))
      return 'all events were accepted'
    },
  },
  {
    id: 'B/11-amplification/errors',
    attempt: 'throw seven hundred errors with eight thousand empty objects in their fields',
    severity: 'high',
    tried: async ({ api }) => {
      let left = 700
      const fail = async () => {
        while (left-- > 0) await api.send('POST', '/events', { body: { event_type: 'fails' } })
      }
      await Promise.all(Array.from({ length: 4 }, fail))
      await until(async () => (await api.page('/runs?status=running&limit=1')).pagination.total === 0, {
        timeoutMs: 60_000,
      })
      return 'all runs failed'
    },
  },
  {
    id: 'B/11-amplification/credentials',
    attempt:
      'create three hundred sessions with metadata of small objects and of 60 KB, and list them ten times at once',
    severity: 'high',
    tried: async ({ api }) => {
      const created = new Map<number, number>()
      for (const metadata of [Array(20_000).fill({}), 'm'.repeat(60_000)]) {
        let left = 300
        const create = async () => {
          while (left-- > 0) {
            const body = { permissions: { 'run:*': ['read'] }, metadata }
            const { status } = await api.send('POST', '/sessions', { body })
            created.set(status, (created.get(status) ?? 0) + 1)
          }
        }
        await Promise.all(Array.from({ length: 8 }, create))
      }
      const lists = Array.from({ length: 10 }, () => api.send('GET', '/sessions?limit=1'))
      const listed = (await Promise.all(lists)).map(({ status }) => status)
      return `created: ${[...created].map(([status, count]) => `${count} × ${status}`).join(', ')}; lists: ${[...new Set(listed)].join(', ')}`
    },
  },
  {
    id: 'B/11-amplification/waiting',
    attempt: 'publish five hundred events of 60 KB for a function that sleeps',
    severity: 'high',
    tried: async ({ api }) => {
      let left = 500
      const data = 'w'.repeat(60_000)
      await Promise.all(
        Array.from({ length: 20 }, async () => {
          while (left-- > 0)
            await api.send('POST', '/events', { body: { event_type: 'waits', event_data: data } })
        }),
      )
      return 'all events were accepted'
    },
  },
])
