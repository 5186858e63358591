import * as assert from 'uvu/assert'
import { deploy, type Run } from '../support/build.ts'
import { openApi } from '../support/http.ts'
import { plantOrg } from '../support/plantOrg.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { until } from '../support/until.ts'
import type { Session } from './issuing.ts'
import { refusal } from './refusal.ts'

/** Writes and removes a file with a long path again and again. Resolves with the error that ended this. */
const FUNCTIONS = `
import { files } from 'svc'
const WRITES = 12_000
const path = 'x/'.repeat(400) + 'x'
export const fill = async () => {
  let n = 0
  const write = async () => {
    while (n++ < WRITES) await files.put(path + (n % 50), '')
  }
  try {
    await Promise.all(Array.from({ length: 32 }, write))
    return null
  } catch ({ code, message }) {
    return { code, message }
  }
}
`

const dataDir = tempDir()
const [mine] = await plantOrg(dataDir, 'free', [])
const [others] = await plantOrg(dataDir, 'free', [])
const server = await startServer({ dataDir })
const api = openApi(server.url, mine?.key ?? '')
const other = openApi(server.url, others?.key ?? '')

/** Asks again while the rate of requests refuses it. */
const sendSlowly = async (send: () => ReturnType<typeof api.send>) =>
  until(
    async () => {
      const answer = await send()
      const isRate = answer.status === 429 && refusal(answer).message.includes('requests per second')
      return isRate ? undefined : answer
    },
    { everyMs: 250 },
  )

const changes = suite('changes that remain in the log for ever', { timeoutMs: 180_000 })

changes(
  'end at the limit of the plan, for functions and requests, and what exists can be removed',
  async () => {
    await deploy(api, 'filling', { 'f.js': FUNCTIONS })
    const created = await sendSlowly(() =>
      api.send('POST', '/sessions', { body: { permissions: { 'env:*': ['read'] } } }),
    )
    const session = (created.json as { data: Session }).data
    const called = await sendSlowly(() =>
      api.send('POST', '/functions/filling/f%2Ffill?wait=0', { body: {} }),
    )
    const { run_id } = (called.json as { data: Run }).data
    const isOver = async () => {
      const { json } = await sendSlowly(() => api.send('GET', `/runs/${run_id}`))
      const { data } = json as { data: Run }
      return data.status === 'running' ? undefined : data
    }
    const run = await until(isOver, { timeoutMs: 120_000, everyMs: 1000 })
    assert.is(run.status, 'succeeded', JSON.stringify(run.error))
    const error = run.result as { code: string; message: string } | null
    assert.is(error?.code, 'rate_limit_exceeded')
    assert.match(error?.message ?? '', /16 MiB per day/)

    // A larger change than the one that was refused.
    const body = { permissions: { 'env:*': ['read'] }, metadata: 'x'.repeat(50_000) }
    const refused = await sendSlowly(() => api.send('POST', '/sessions', { body }))
    assert.equal([refused.status, refusal(refused).code], [429, 'rate_limit_exceeded'])
    assert.match(refusal(refused).message, /changes of 16 MiB per day/)
    assert.ok(Number(refused.headers.get('Retry-After')) > 0)

    const revoked = await sendSlowly(() => api.send('DELETE', `/sessions/${session.session_id}`))
    assert.is(revoked.status, 204)
    assert.is((await sendSlowly(() => api.send('DELETE', '/projects/filling'))).status, 204)
    assert.is((await other.send('POST', '/sessions', { body })).status, 201, 'another organization')
  },
)

changes.after(() => server.stop())
changes.run()
