import * as assert from 'uvu/assert'
import { bytes, count, duration } from '../../src/cli/figures.ts'
import { openProgress } from '../../src/cli/progress.ts'
import { suite } from '../support/suite.ts'

/** The lines that a bar shows, with a clock that the test moves. */
const bar = (columns: number | null = 200) => {
  let [now, shown] = [0, '']
  const err = (text: string) => void (shown += text)
  const progress = openProgress({ err, progressColumns: columns }, 'events', () => now)
  return {
    progress,
    report(atMs: number, done: number, total: number | null, label?: string): string {
      now = atMs
      progress.report(done, total, label)
      return shown.split('\r\x1b[K').at(-1) ?? ''
    },
    shown: () => shown,
  }
}

const test = suite('a progress bar')

test('shows share, count, rate and the time left', () => {
  const { report } = bar()
  assert.is(report(0, 0, 4000), '[....................]  0 %  0 of 4,000 events')
  assert.is(
    report(2000, 1000, 4000, 'runs'),
    'runs  [#####...............]  25 %  1,000 of 4,000 events  500/s  6 s left',
  )
})

test('has the rate of the last ten seconds, and none of the work before a resumption', () => {
  const { report } = bar()
  report(0, 1_000_000, 2_000_000)
  assert.match(report(1000, 1_000_100, 2_000_000), ' 100/s ')
  for (let s = 2; s <= 20; s++) report(s * 1000, 1_000_100 + (s - 1) * 10, 2_000_000)
  assert.match(report(21_000, 1_000_300, 2_000_000), ' 10/s ')
})

test('begins its rate again with the next part of the work', () => {
  const { report } = bar()
  report(0, 0, 100, 'runs')
  report(1000, 100, 100, 'runs')
  assert.is(report(2000, 0, 100, 'events'), 'events  [....................]  0 %  0 of 100 events')
})

test('without a total shows what is done', () => {
  const { report } = bar()
  report(0, 0, null)
  assert.is(report(1000, 50, null), '50 events  50/s')
})

test('of nothing is full', () => {
  assert.match(bar().report(0, 0, 0), '100 %')
})

test('is painted at most ten times a second, and fits the terminal', () => {
  const { report, shown } = bar(10)
  for (let ms = 0; ms < 1000; ms++) report(ms, ms, 1000)
  const lines = shown().split('\r\x1b[K').slice(1)
  assert.is(lines.length, 10)
  assert.ok(lines.every((line) => line.length < 10))
})

test('shows nothing without a terminal', () => {
  const { report, progress, shown } = bar(null)
  report(0, 0, 10)
  progress.end()
  assert.is(shown(), '')
})

test('uses figures that a person reads at once', () => {
  assert.equal([0, 999, 1_234_567].map(count), ['0', '999', '1,234,567'])
  assert.equal([0, 1023, 1536, 1 << 30, 250 * 1024].map(bytes), [
    '0 B',
    '1,023 B',
    '1.5 KiB',
    '1.0 GiB',
    '250 KiB',
  ])
  assert.equal([5, 1500, 61_000, 3_700_000, 200_000_000].map(duration), [
    '5 ms',
    '2 s',
    '1 min 1 s',
    '1 h 1 min',
    '2 d 7 h',
  ])
})
test.run()
