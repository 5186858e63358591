import { connect, type Socket } from 'node:net'
import * as assert from 'uvu/assert'
import { clock } from '../../src/clock.ts'
import { deploy, publish } from '../support/build.ts'
import { openApi } from '../support/http.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'
import { JOBS } from './jobs.ts'
import { follow, upToMark, type Follower } from './sse.ts'

const dataDir = tempDir()
let server = await startServer({ dataDir })
const { key } = server.api
const api = () => openApi(server.url, key)
await deploy(api(), 'work', { 'jobs.js': JOBS })

const subscribe = (query = '', lastId?: string) =>
  follow(api(), `/env/subscribe${query}`, lastId === undefined ? {} : { lastId })

/** Longer than the time after which an event counts as delivered. */
const STALL_MS = 1500

const consumer = suite('a named consumer', { timeoutMs: 60_000 })

consumer('shares the events with others of its name', async () => {
  const [one, two] = [await subscribe('?consumer=pair'), await subscribe('?consumer=pair')]
  const published = await Promise.all(
    Array.from({ length: 40 }, async () => (await publish(api(), 'shared')).event_id),
  )
  const created = (follower: Follower) =>
    follower.seen
      .filter(({ data }) => data['event_type'] === 'shared')
      .map(({ data }) => String(data['event_id']))
  await until(() => created(one).length + created(two).length >= 40)
  for (const follower of [one, two]) {
    follower.close()
    assert.ok(created(follower).length > 0)
  }
  assert.equal(new Set([...created(one), ...created(two)]), new Set(published))
})

consumer('loses nothing when connections break', async () => {
  const everything = await subscribe()
  const seen = new Set<string>()
  /** Breaks the connection at the first event, although more events are in transit. */
  const client = (breaks: boolean) =>
    new Promise<Socket>((resolve) => {
      const socket = connect(Number(new URL(server.url).port), '127.0.0.1').setEncoding('utf8')
      socket.write(
        `GET /v1/env/subscribe?consumer=steady HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`,
      )
      let text = ''
      socket.on('data', (chunk: string) => {
        resolve(socket)
        text += chunk
        const events = [...text.matchAll(/^id: (\S+)\nevent: .*\ndata: .*\n\n/gm)]
        for (const [, id = ''] of events) seen.add(id)
        if (breaks && events.length > 0) socket.destroy()
      })
    })
  for (let n = 0; n < 30; n++) {
    await client(true)
    await Promise.all(Array.from({ length: 10 }, () => publish(api(), 'steady')))
  }
  const all = await upToMark(api(), everything)
  everything.close()
  const last = await client(false)
  await until(() => all.every(({ id }) => seen.has(id)))
  last.destroy()
})

consumer('loses nothing when a connection breaks while the service stalls', async () => {
  const { event_id } = await new Promise<{ event_id: string }>((resolve, reject) => {
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1').setEncoding('utf8')
    socket.write(
      `GET /v1/env/subscribe?consumer=stalled HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`,
    )
    let published: Promise<{ event_id: string }> | undefined
    socket.on('data', (chunk: string) => {
      published ??= publish(api(), 'stalled')
      if (!chunk.includes('event:created')) return
      socket.destroy() // the event may not have been read
      const end = clock.monotonic() + STALL_MS
      while (clock.monotonic() < end);
      published.then(resolve, reject)
    })
  })
  const again = await subscribe('?consumer=stalled')
  await until(() => again.seen.some(({ data }) => data['event_id'] === event_id))
  again.close()
})

consumer('keeps its position across a restart, and ids stay valid', async () => {
  const [follower, named] = [await subscribe(), await subscribe('?consumer=restart')]
  await upToMark(api(), named)
  await upToMark(api(), follower) // last, so that nothing else is on its way to it
  for (const client of [follower, named]) client.close()
  const { event_id } = await publish(api(), 'missed')
  await server.stop()
  server = await startServer({ dataDir })
  const again = await subscribe('', follower.seen.at(-1)?.id)
  assert.is((await again.upTo('event:created')).at(-1)?.data['event_id'], event_id)
  const renamed = await subscribe('?consumer=restart')
  await until(() => renamed.seen.some(({ data }) => data['event_id'] === event_id))
  for (const client of [again, renamed]) client.close()
})

consumer('is not moved by HEAD, whose reply could contain no event', async () => {
  const { event_id } = await publish(api(), 'probed')
  assert.is((await api().send('HEAD', '/env/subscribe?consumer=probed&from=start')).status, 405)
  const follower = await subscribe('?consumer=probed&from=start')
  await until(() => follower.seen.some(({ data }) => data['event_id'] === event_id))
  follower.close()
})

for (const name of ['', '-a', 'a/b', 'x'.repeat(64)]) {
  consumer(`refuses the name "${name.slice(0, 10)}"`, async () => {
    const { status, message } = await api().refused(
      'GET',
      `/env/subscribe?consumer=${encodeURIComponent(name)}`,
    )
    assert.is(status, 400)
    assert.match(message, 'consumer: ')
  })
}

consumer.after(() => server.stop())
consumer.run()
