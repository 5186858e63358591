import * as assert from 'uvu/assert'
import type { BuildChanges } from '../../src/client/api.ts'
import { type BuildUpload, type Files, upload } from '../support/build.ts'
import { longestTurn } from '../support/longestTurn.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'

/** A build whose functions have 13 MB of metadata. */
const long = (version: number): Files => {
  const properties = `Object.fromEntries(Array.from({ length: 190 }, (_, n) => ['p' + n, { type: 'string', minLength: ${version} }]))`
  const lines = Array.from(
    { length: 260 },
    (_, n) => `export const f${n} = fn({ mcp: { service: 's', description: 'x', input } }, () => 1)`,
  )
  const module = [
    `import { fn } from 'svc'`,
    `const input = { type: 'object', properties: ${properties} }`,
    ...lines,
  ]
  return Object.fromEntries(Array.from({ length: 7 }, (_, n) => [`m${n}.js`, module.join('\n')]))
}

const server = await startServer()
const { api } = server
await api.post('/projects', { name: 'long' })
const uploaded = async (version: number, fields = {}): Promise<string> => {
  const { json, text } = await upload(api, 'long', long(version), fields)
  const { data } = json as { data?: BuildUpload }
  assert.ok(data, text.slice(0, 300))
  return data.build_id
}

const lists = suite('a list of functions of 13 MB', { timeoutMs: 120_000 })
/** The work is done in many turns of the event loop, so that other requests continue. */
const inTurns = async (name: string, work: () => Promise<unknown>): Promise<void> => {
  const { longestMs, allMs } = await longestTurn(work)
  assert.ok(longestMs < allMs / 5, `${name}: one turn took ${longestMs} ms of ${allMs} ms of the processor`)
}

lists('is stored, compared, deployed and read again in many turns of the event loop', async () => {
  const [one, other] = [await uploaded(1), await uploaded(2)]
  const path = (build_id: string) => `/projects/long/builds/${build_id}`
  await inTurns('the first deployment', () => api.post(`${path(one)}/deploy`))
  await inTurns('the changes', async () => {
    const { changed } = await api.get<BuildChanges>(`${path(other)}/changes`)
    assert.is(changed.length, 1820)
  })
  await inTurns('the next deployment', () => api.post(`${path(other)}/deploy`))
  await inTurns('the same upload', async () =>
    assert.is((await upload(api, 'long', long(2), { build_id: other })).status, 200),
  )
  await inTurns('a new upload', () => uploaded(3))
})

lists.after(() => server.stop())
lists.run()
