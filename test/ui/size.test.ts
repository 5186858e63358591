import * as assert from 'uvu/assert'
import { type Dashboard, openDashboard } from '../../src/package/dashboard.ts'
import { suite } from '../support/suite.ts'

/** Compressed bytes. */
const MOST_OF_ALL = 120 * 1024
const MOST_OF_FIRST = 60 * 1024

const size = suite<{ built: Dashboard }>('the size of the dashboard')

size.before(async (context) => {
  context.built = await openDashboard()()
})

const sumOf = (built: Dashboard, paths: readonly string[]): number =>
  paths.reduce((sum, path) => sum + (built.get(path)?.brotli.length ?? NaN), 0)

size('is small enough for a slow connection', ({ built }) => {
  const scripts = [...built.keys()].filter((path) => path.endsWith('.js'))
  assert.ok(sumOf(built, scripts) < MOST_OF_ALL)
})

size('is smaller before the first paint, which needs no charts', ({ built }) => {
  const page = built.get('index.html')?.bytes.toString() ?? ''
  const first = [...page.matchAll(/src="\/ui\/([^"]+)"/g)].map(([, path = '']) => path)
  assert.is(first.length, 1)
  assert.ok(sumOf(built, first) < MOST_OF_FIRST)
  const charts = [...built].filter(([, { bytes }]) => bytes.includes('u-cursor-x')) // a class of the library
  assert.equal(charts.map(([path]) => path.replace(/-\w+\./, '.')).sort(), [
    'assets/styles.css',
    'assets/uPlot.esm.js',
  ])
})

size.run()
