import { publish } from '../support/build.ts'
import { begun, call, memorySuite, statuses, withUnread } from './memory.ts'

memorySuite('memory of the service: replies', [
  {
    id: 'B/11-amplification/runs',
    attempt: 'list a hundred runs whose results have 5.9 MiB of small objects, ten times at once; read none',
    severity: 'high',
    tried: async ({ api }) => {
      const runs = await Promise.all(Array.from({ length: 40 }, () => call(api, 'text', 5.9)))
      await Promise.all(Array.from({ length: 8 }, () => call(api, 'large', 5.9)))
      const listed = await statuses(Array.from({ length: 10 }, () => api.send('GET', '/runs?limit=100')))
      await withUnread(
        api,
        Array.from({ length: 60 }, (_, n) => `/runs/${runs[n % runs.length]?.run_id}`),
        async () => void (await api.get('/runs?limit=100')),
      )
      return `lists: ${listed}`
    },
  },
  {
    id: 'B/07-sse/unread',
    attempt: 'follow streams of large data by eighty clients that do not read',
    severity: 'high',
    tried: async ({ api }) => {
      const small = await call(api, 'emits', 300, 0.06)
      const large = await call(api, 'emits', 12, 4)
      const streams = [small.stream_id, large.stream_id]
      const paths = Array.from({ length: 80 }, (_, n) =>
        n % 4 === 3 ? '/env/subscribe?from=start' : `/streams/${streams[n % 2]}/subscribe?from=start`,
      )
      await withUnread(api, paths, async () => {
        for (let n = 0; n < 20; n++) await publish(api, 'nothing', 'z'.repeat(60_000))
      })
      return 'all clients were served'
    },
  },
  {
    id: 'B/08-bodies/webhook-replies',
    attempt: 'call twenty webhooks at once whose replies are 2 MiB of small objects',
    severity: 'high',
    tried: async ({ urls }) =>
      statuses(Array.from({ length: 20 }, () => fetch(urls.get('/replies') ?? '', { method: 'POST' }))),
  },
  {
    id: 'B/08-bodies/webhook-replies/unread',
    attempt: 'call webhooks that reply with 6 MB of text or bytes sixty times; read only the beginning',
    severity: 'critical',
    tried: async ({ urls }) => {
      const opened: Awaited<ReturnType<typeof begun>>[] = []
      try {
        for (let n = 0; n < 15; n++)
          opened.push(
            ...(await Promise.all(
              ['/texts', '/texts', '/texts', '/bytes'].map((path) => begun(urls.get(path) ?? '', 'POST')),
            )),
          )
        const refused = opened.find(({ beginning }) => !beginning.startsWith('HTTP/1.1 200'))
        if (refused) throw new Error(refused.beginning)
        return `${opened.length} replies have begun`
      } finally {
        for (const { socket } of opened) socket.destroy()
      }
    },
  },
])
