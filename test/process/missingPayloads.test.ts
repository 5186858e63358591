import { globSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { deploy, type Event, handle, handled } from '../support/build.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

const BUILD = `import { fn } from 'svc'
export const got = fn({ onEvent: 'got' }, ({ data }) => 'r'.repeat(data.length))`

const LENGTH = 100_000

/** Removes the file with a large text of this character. */
const lose = (dataDir: string, character: string) => {
  const [file = '', ...others] = globSync(join(dataDir, '**/*.json')).filter((file) =>
    readFileSync(file, 'latin1').startsWith(`"${character.repeat(3)}`),
  )
  assert.equal(others, [])
  const stored = readFileSync(file)
  rmSync(file)
  return { restore: () => writeFileSync(file, stored) }
}

const missing = suite('payloads that are missing in the blobs', { timeoutMs: 60_000 })

missing('are reported as an outage, and a run waits for its input', async () => {
  const server = await startServer()
  const { api, dataDir } = server
  await deploy(api, 'shop', { 'main.js': BUILD })
  const { run_id, event_id } = await handle(api, 'got', 'x'.repeat(LENGTH))
  const [input, result] = [lose(dataDir, 'x'), lose(dataDir, 'r')]
  for (const path of [`/runs/${run_id}`, `/runs/${run_id}/input`, `/events/${event_id}`]) {
    const { status, text } = await api.send('GET', path)
    assert.is(status, 503, `${path}: ${text}`)
    assert.match(text, /payloads\/.* is missing/)
  }

  const replay = await api.post<Event>(`/runs/${run_id}/replay`)
  await until(() =>
    server.output.some((line) => line.includes('cannot be read') && line.includes('payloads/')),
  )
  const { data: runs } = await api.page<{ status: string; attempt: number }>(
    `/events/${replay.event_id}/runs`,
  )
  assert.equal(
    runs.map(({ status }) => status),
    ['running'],
  )
  input.restore()
  result.restore()
  const [run] = await handled(api, replay.event_id)
  assert.is(run?.status, 'succeeded')
  assert.is(run?.attempt, 1)
  assert.is((await api.get<{ result: string }>(`/runs/${run_id}`)).result.length, LENGTH)
  await server.stop()
})

missing.run()
