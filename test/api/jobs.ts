import { PATIENCE } from '../support/patience.ts'

/** Functions that several test files deploy as `jobs.js`. */
export const JOBS = `
import { setTimeout } from 'node:timers/promises'
import { fn, currentRun } from 'svc'

export const first = fn({ 'on-event': 'two' }, () => 'first')
export const second = fn({ 'on-event': 'two' }, () => 'second')
export const seen = fn({ 'on-event': 'seen' }, (event) => ({ event, run: currentRun() }))
export const fails = fn({ onEvent: 'fails' }, () => { throw new TypeError('broken on purpose') })

const failing = (until) => () => {
  const { attempt } = currentRun() // attempts may run on several workers
  if (attempt < until) throw new Error('try ' + attempt)
  return { tried: attempt, attempt }
}
export const flaky = fn({ 'on-event': 'flaky', retry: { attempts: 3, delay: ${300 * PATIENCE} } }, failing(3))
export const patient2s = fn({ 'on-event': 'patient2s', retry: { attempts: 1, delay: 2_000 } }, failing(99))
export const patient10s = fn({ 'on-event': 'patient10s', retry: { attempts: 1, delay: 10_000 } }, failing(99))
export const patient60s = fn({ 'on-event': 'patient60s', retry: { attempts: 1, delay: 60_000 } }, failing(99))
export const hopeless = fn({ 'on-event': 'hopeless', retry: { attempts: 2, delay: 1 } }, failing(99))
export const once = fn({ 'on-event': 'once', retry: 0 }, failing(99))

export const add = (a, b) => a + b
export const throwsText = (text) => { throw new Error(text) }
export const all = (...args) => args
export const wait = (ms) => setTimeout(ms, 'waited', { signal: currentRun().signal })
export const obeys = () => new Promise((resolve) => currentRun().signal.addEventListener('abort', () => resolve('too late')))
`
