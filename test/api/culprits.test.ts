import * as assert from 'uvu/assert'
import { deploy, handled, publish, type Run, runsOf } from '../support/build.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

const INNOCENT = 4

/** The first attempt of an innocent run waits; the culprit acts when all of them have begun. */
const code = `
  import { currentRun, fn } from 'svc'
  let begun = 0
  const isFirst = () => currentRun().attempt === 1
  export const works = fn({ 'on-event': 'work' }, () => {
    begun++
    return isFirst() ? new Promise(() => {}) : 'done'
  })
  const after = (act) => async () => {
    while (isFirst() && begun < ${INNOCENT}) await new Promise((resolve) => setTimeout(resolve, 5))
    act()
    return new Promise(() => {})
  }
  export const exits = fn({ 'on-event': 'exit' }, after(() => process.exit(3)))
  export const fills = fn({ 'on-event': 'fill' }, after(() => {
    const held = []
    for (;;) held.push(Array(1_000_000).fill({}))
  }))
`

const server = await startServer({ env: {} }) // one worker: the runs must share a process, so no cluster
const { api } = server

const culprits = suite('a function that ends its process', { timeoutMs: 120_000 })

/** The ended attempts of an event's only handler, first attempt first. A busy machine fills a memory slowly. */
const attemptsOf = async (event_id: string, count: number): Promise<Run[]> =>
  (await handled(api, event_id, count, { timeoutMs: 60_000 })).toSorted((a, b) => a.attempt - b.attempt)

/** The attempts of the culprit, and those of each innocent run. */
const outcomes = async (project: string, cause: string, attempts: number) => {
  await deploy(api, project, {
    [`${project}.js`]: code.replaceAll(`'on-event': '`, `'on-event': '${project}:`),
  })
  const work = []
  for (let n = 0; n < INNOCENT; n++) work.push(await publish(api, `${project}:work`, n))
  const { event_id } = await publish(api, `${project}:${cause}`)
  const innocent = await Promise.all(work.map((event) => attemptsOf(event.event_id, 2)))
  return { culprit: await attemptsOf(event_id, attempts), innocent }
}

culprits('fails alone, and the other runs start again', async () => {
  const { culprit, innocent } = await outcomes('exits', 'exit', 1)
  assert.equal(
    culprit.map(({ status, error }) => [status, error?.code, error?.message]),
    [['failed', 'worker_lost', 'The process of the function exited with code 3']],
  )
  for (const [first, second, ...more] of innocent) {
    assert.equal([first?.status, first?.error?.code], ['failed', 'worker_lost'])
    assert.is(first?.error?.message, `lost with run ${culprit[0]?.run_id}`)
    assert.equal([second?.status, second?.result, more.length], ['succeeded', 'done', 0])
  }
})

culprits('is found in its second attempt if the first one left no trace', async () => {
  const { culprit, innocent } = await outcomes('fills', 'fill', 2)
  assert.equal(
    culprit.map(({ status }) => status),
    ['failed', 'failed'],
  )
  assert.match(culprit[0]?.error?.message ?? '', /^lost with its process/)
  // The collector of garbage may occupy the process for longer than it may be silent.
  assert.match(culprit[1]?.error?.message ?? '', /ran out of memory|did not answer a ping/)
  for (const runs of innocent) assert.equal([runs.length, runs.at(-1)?.result], [2, 'done'])
})

const hanging = `
  import { fn } from 'svc'
  let begun = 0
  export const hangs = fn({ 'on-event': 'hang' }, () => {
    begun++
    return new Promise(() => {})
  })
  export const dies = fn({ 'on-event': 'die' }, async () => {
    while (begun === 0) await new Promise((resolve) => setTimeout(resolve, 5))
    process.exit(3)
  })
`

culprits('leaves runs that are cancelled by the id of the attempt that was lost', async () => {
  await deploy(api, 'hanging', { 'hanging.js': hanging })
  const { event_id } = await publish(api, 'hang')
  await publish(api, 'die')
  const first = await until(async () => {
    const runs = await runsOf(api, event_id)
    return runs.some(({ attempt, status }) => attempt === 2 && status === 'running')
      ? runs.find(({ attempt }) => attempt === 1)
      : undefined
  })
  await api.post(`/runs/${first.run_id}/cancel`)
  const [lost, next] = await attemptsOf(event_id, 2)
  assert.equal([lost?.error?.code, next?.status], ['worker_lost', 'cancelled'])
})

culprits.after(() => server.stop())
culprits.run()
