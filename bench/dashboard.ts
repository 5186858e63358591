import type { Page } from 'playwright-core'
import { clock } from '../src/clock.ts'
import { startChromium } from '../test/support/chromium.ts'
import { signIn } from '../test/support/openDashboard.ts'
import type { Figure } from './figure.ts'
import { FEW, MANY, serverWithRuns } from './lists.ts'

/** Visits of each page; the median counts. */
const VISITS = 15

const medianOf = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN

const timed = async (work: () => Promise<unknown>): Promise<number> => {
  const began = clock.monotonic()
  await work()
  return clock.monotonic() - began
}

/** The time until the browser paints text first, milliseconds after the navigation began. */
const firstPaint = (page: Page): Promise<number> =>
  page.evaluate<number>(`new Promise((resolve) =>
    new PerformanceObserver((list) => {
      const paint = list.getEntriesByName('first-contentful-paint')[0]
      if (paint) resolve(paint.startTime)
    }).observe({ type: 'paint', buffered: true }))`)

/** Medians of visits of the list of runs, by what the visitor does. */
const visits = async (count: number): Promise<Record<string, number>> => {
  const server = await serverWithRuns(count)
  const chromium = await startChromium()
  try {
    const { page } = await chromium.open(`${server.url}/ui/runs`)
    await signIn(page, server.key)
    const rows = () => page.getByRole('row').nth(50).waitFor()
    await rows()
    const times: Record<string, number[]> = { paint: [], list: [], 'by status': [], 'next page': [] }
    for (let visit = 0; visit < VISITS; visit++) {
      times['list']?.push(await timed(async () => (await page.goto(`${server.url}/ui/runs`), await rows())))
      times['paint']?.push(await firstPaint(page))
      const failed = page.getByRole('row').nth(50).filter({ hasText: 'Failed' })
      times['by status']?.push(
        await timed(async () => {
          await page.getByLabel('Status').selectOption('failed')
          await failed.waitFor()
        }),
      )
      const newest = page.locator(`a[href="${await page.locator('tbody a').first().getAttribute('href')}"]`)
      times['next page']?.push(
        await timed(async () => {
          await page.getByRole('button', { name: 'Older' }).click()
          await newest.waitFor({ state: 'detached' })
        }),
      )
    }
    return Object.fromEntries(Object.entries(times).map(([name, all]) => [name, medianOf(all)]))
  } finally {
    await chromium.close()
    await server.stop()
  }
}

/** The list of runs in a real browser, with few runs and with very many. */
export const dashboard = async (): Promise<Figure[]> => {
  const few = await visits(FEW)
  const { paint = NaN, ...many } = await visits(MANY)
  return [
    { what: 'dashboard, first paint, p50', value: paint, unit: 'ms', atMost: 300 },
    ...Object.entries(many).flatMap(([name, value]) => [
      {
        what: `dashboard, ${name} with ${MANY.toLocaleString('en')} runs, p50`,
        value,
        unit: 'ms',
        atMost: 300,
      },
      {
        what: `  times that with ${FEW.toLocaleString('en')}`,
        value: value / (few[name] ?? NaN),
        unit: '',
        atMost: 2,
      },
    ]),
  ]
}
