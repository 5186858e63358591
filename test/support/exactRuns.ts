import * as assert from 'uvu/assert'
import type { Run } from './build.ts'
import type { Api } from './http.ts'

/** Two handlers of the event `work`, without and with retries. The event data is their duration. */
export const WORK = `
import { setTimeout } from 'node:timers/promises'
import { fn } from 'svc'
export const plain = fn({ 'on-event': 'work' }, ({ data }) => setTimeout(data, 'done'))
export const keeps = fn({ 'on-event': 'work', retry: { attempts: 5, delay: 10 } }, ({ data }) => setTimeout(data, 'done'))
`

/** Reads all pages of a list. */
export const allOf = async <T>(api: Api, path: string): Promise<T[]> => {
  const all: T[] = []
  for (;;) {
    const { data, pagination } = await api.page<T>(
      `${path}${path.includes('?') ? '&' : '?'}limit=100&offset=${all.length}`,
    )
    all.push(...data)
    if (!pagination.has_more) return all
  }
}

/** What the ticks of the schedules have returned so far. A tick that starts between two pages moves another one to the second page. */
export const tickResults = async (api: Api): Promise<unknown[]> => {
  const ticks = new Map((await allOf<Run>(api, '/runs?type=schedule')).map((run) => [run.run_id, run]))
  return [...ticks.values()].flatMap(({ result }) => (result === null ? [] : [result]))
}

export const isLost = ({ status, error }: Run): boolean =>
  status === 'failed' && error?.code === 'worker_lost'

/** Checks that each handler has run once for the event. A run of a dead worker was lost, and its next attempt began (I3). */
export const isExact = (runs: readonly Run[]): void => {
  const described = JSON.stringify(
    runs.map(({ fn, status, attempt, error }) => [fn, attempt, status, error?.code]),
  )
  for (const name of ['jobs/plain', 'jobs/keeps']) {
    const chain = runs.filter(({ fn }) => fn === name).sort((a, b) => a.attempt - b.attempt)
    assert.equal(
      chain.map(({ attempt }) => attempt),
      chain.map((_, n) => n + 1),
      described,
    )
    assert.ok(chain.slice(0, -1).every(isLost), described)
    assert.is(chain.at(-1)?.status, 'succeeded', described)
    for (const run of chain.slice(1)) assert.is(run.origin_run_id, chain[0]?.run_id)
  }
}
