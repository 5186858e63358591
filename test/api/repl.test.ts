import * as assert from 'uvu/assert'
import { deploy, type Run } from '../support/build.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'

const server = await startServer()
const { api } = server
await deploy(api, 'lab', { 'm.js': 'export const f = () => 1' })

const evaluate = (code: string, repl_id: string): Promise<Run> =>
  api.post('/projects/lab/eval', { code, repl_id })

const repl = suite('a REPL')

repl('keeps its declarations, as runs of their own type', async () => {
  const first = await evaluate('let n = 1; const add = (x) => (n += x)', 'one')
  assert.equal([first.run_type, first.status], ['repl', 'succeeded'], JSON.stringify(first.error))
  assert.is((await evaluate('add(41)', 'one')).result, 42)
  assert.is((await evaluate('n', 'one')).result, 42)
})

repl('continues after an error', async () => {
  await evaluate('let kept = 1', 'errors')
  assert.is((await evaluate('throw new Error("no")', 'errors')).status, 'failed')
  assert.is((await evaluate('kept', 'errors')).result, 1)
})

repl('shares no declarations with another session or project', async () => {
  await evaluate('let mine = 1', 'two')
  assert.is((await evaluate('typeof mine', 'three')).result, 'undefined')
  await deploy(api, 'neighbour', { 'n.js': 'export const f = () => 1' })
  const there = await api.post<Run>('/projects/neighbour/eval', { code: 'typeof mine', repl_id: 'two' })
  assert.is(there.result, 'undefined')
})

repl('is one of many concurrent sessions', async () => {
  const sessions = Array.from({ length: 8 }, async (_, n) => {
    await evaluate(`let count = ${n}`, `many${n}`)
    for (let times = 0; times < 3; times++) await evaluate('count += 10', `many${n}`)
    return (await evaluate('count', `many${n}`)).result
  })
  assert.equal(await Promise.all(sessions), [30, 31, 32, 33, 34, 35, 36, 37])
})

repl.after(() => server.stop())
repl.run()
