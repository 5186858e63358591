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
