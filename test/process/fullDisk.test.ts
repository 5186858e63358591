import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { RESERVED_BYTES } from '../../src/projections/rebuildRoom.ts'
import { type Event, publish } from '../support/build.ts'
import { hasBubblewrap } from '../support/bubblewrap.ts'
import { hasEnded } from '../support/hasEnded.ts'
import { cli, cliJson, startCli } from '../support/cli.ts'
import { freePort } from '../support/freePort.ts'
import { openApi } from '../support/http.ts'
import { limitFiles } from '../support/limitFiles.ts'
import { spawnServer } from '../support/server.ts'
import { openSmallDisk, type SmallDisk } from '../support/smallDisk.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'

const smallDisk = new URL('../fixtures/smallDisk.ts', import.meta.url).href
const EMBEDDED = {
  SVC_EVENT_STORE: 'embedded:',
  SVC_READ_MODELS: 'embedded:',
  SVC_BLOBS: 'embedded:',
  SVC_REDIS: '',
  NODE_OPTIONS: `--import ${smallDisk}`,
}

const readyz = async (url: string): Promise<{ status: number; text: string }> => {
  const reply = await fetch(`${url}/readyz`)
  return { status: reply.status, text: await reply.text() }
}

/** The longest time until a service that starts has this state. */
const STARTS = { timeoutMs: 60_000 }

type Served = ReturnType<typeof startCli>
/** Enough for a start that opens its files, and too little for the tables of the read models. */
const ROOM_TO_OPEN = 5_200_000

const disk = suite('a service on a full disk (I9)', { timeoutMs: 120_000 })

disk('reports in /readyz that writes are refused, and when they are accepted again', async () => {
  const server = await spawnServer({ env: EMBEDDED })
  const { api, url } = server
  const pid = server.process.pid ?? 0
  const { event_id } = await publish(api, 'order:created')
  assert.is(await limitFiles(pid, 4096), 0)
  const refused = await until(async () => {
    const { status } = await api.send('POST', '/events', { body: { event_type: 'order:created' } })
    return status === 503
  })
  assert.ok(refused)
  const full = await until(async () => {
    const ready = await readyz(url)
    return ready.status === 503 ? ready : undefined
  })
  assert.match(full.text, /Writes are refused: /)
  assert.is(await limitFiles(pid, 'unlimited'), 0)
  await until(async () => (await readyz(url)).status === 200) // nothing was written in the meantime
  await publish(api, 'order:created')
  assert.is((await api.get<Event>(`/events/${event_id}`)).event_id, event_id)
  await server.end('SIGTERM')
})

disk('that was killed there starts again, waits, and continues when there is room', async () => {
  const dataDir = tempDir()
  const first = await spawnServer({ dataDir, env: EMBEDDED })
  const { event_id } = await publish(first.api, 'order:created')
  assert.is(await limitFiles(first.process.pid ?? 0, 4096), 0)
  await until(async () => (await readyz(first.url)).status === 503 || (await publish(first.api, 'x'), false))
  await first.end('SIGKILL')

  const port = await freePort()
  const starting = spawnServer({
    dataDir,
    env: { ...EMBEDDED, SVC_TEST_FILE_BYTES: String(1 << 20), PORT: String(port) },
  })
  starting.catch(() => {}) // awaited below
  const url = `http://127.0.0.1:${port}`
  const waiting = await until(async () => {
    const ready = await readyz(url)
    return /embedded store failed/.test(ready.text) ? ready : undefined
  }, STARTS)
  assert.is(waiting.status, 503)
  assert.is(await limitFiles(Number(readFileSync(join(dataDir, 'lock'), 'utf8')), 'unlimited'), 0)
  const second = await starting
  assert.is((await second.api.get<Event>(`/events/${event_id}`)).event_id, event_id)
  await publish(second.api, 'order:created')
  await second.end('SIGTERM')
})
const onFullDisk = hasBubblewrap ? disk : disk.skip

/** Gives work a way to start `svc serve` on a small disk, one after another, and kills what is left. */
const onSmallDisk = async (
  work: (small: SmallDisk, serve: () => Served, url: string) => Promise<void>,
  bytes = 32 << 20,
): Promise<void> => {
  const small = await openSmallDisk(bytes)
  const port = await freePort()
  const services: Served[] = []
  const serve = () => {
    const service = startCli(['serve'], {
      env: { ...EMBEDDED, NODE_OPTIONS: '', SVC_DATA_DIR: small.path, PORT: String(port) },
      within: small.within,
    })
    services.push(service)
    return service
  }
  try {
    await work(small, serve, `http://127.0.0.1:${port}`)
  } finally {
    for (const { process: started } of services) started.kill('SIGKILL')
    await small.close()
  }
}

const becomesReady = async (service: Served, url: string): Promise<void> => {
  const ready = await until(async () => {
    if (hasEnded(service.process)) return 'ended'
    return (await readyz(url)).status === 200
  }, STARTS)
  assert.is(ready, true, service.err() + service.out())
}

const endsInOrder = async (service: Served): Promise<void> => {
  service.process.kill('SIGTERM')
  assert.is(await service.ended, 0)
}

onFullDisk('with not a byte left starts, waits, and continues when there is room', async () => {
  await onSmallDisk(async (small, serve, url) => {
    const first = serve()
    await becomesReady(first, url)
    await endsInOrder(first)
    small.fill()
    const second = serve()
    await second.shows('The embedded store failed: database or disk is full')
    assert.is((await readyz(url)).status, 503)
    small.free()
    await becomesReady(second, url)
    await endsInOrder(second)
  })
})

onFullDisk('names the full disk, not the read models that cannot be built there', async () => {
  await onSmallDisk(async (small, serve, url) => {
    const first = serve()
    await becomesReady(first, url)
    await endsInOrder(first)
    small.remove('read-models.db')
    small.fill(ROOM_TO_OPEN)
    const second = serve()
    const waits = await until(async () => {
      const { text } = await readyz(url)
      return /disk is full/.test(text) ? text : undefined
    }, STARTS)
    assert.match(waits, /Writes are refused: /)
    small.free()
    await becomesReady(second, url)
    await endsInOrder(second)
  })
})

onFullDisk('leaves the reserve to the log: a rebuild waits for room and reports it', async () => {
  await onSmallDisk(async (small, serve, url) => {
    const service = serve()
    await becomesReady(service, url)
    const { api_key } = JSON.parse(small.read('secrets.json')) as { api_key: string }
    const api = openApi(url, api_key)
    const given = { env: { SVC_URL: url, SVC_DATA_DIR: small.path }, within: small.within }
    const { event_id } = await publish(api, 'order:created')
    small.fill(RESERVED_BYTES - 1)
    await cliJson(['projections', 'rebuild', 'events', '--no-wait'], given)
    const shown = await until(async () => {
      const { out } = await cli(['projections', 'status', 'events'], given)
      return /waits for 128 MiB/.test(out) ? out : undefined
    })
    assert.match(shown, /rebuilding .* building, .* leaves 128 MiB to the log/)
    await publish(api, 'order:created')
    assert.is((await api.get<Event>(`/events/${event_id}`)).event_id, event_id)
    assert.is((await readyz(url)).status, 200)
    small.free()
    await cliJson(['projections', 'rebuild', 'events'], given)
    await endsInOrder(service)
  }, 176 << 20)
})

disk.run()
