import * as assert from 'uvu/assert'
import { openDashboard, signInAsOperator } from '../support/openDashboard.ts'
import { stories } from '../support/stories.ts'

const story = stories('addresses of the dashboard that nobody has linked')

const LONG = 'x'.repeat(3000)

/** An address below `/ui`, the heading of its page, and the text that explains it. */
const STRANGE: readonly (readonly [path: string, heading: string, text: RegExp])[] = [
  ['/nope', 'Not found', /There is no page at this address/],
  ['/runs/a/b', 'Not found', /There is no page at this address/],
  ['/runs?status=nonsense', 'Runs', /^status: expected one of/],
  ['/runs?before=nonsense', 'Runs', /^before: expected/],
  ['/runs?cursor=nonsense', 'Runs', /^before: expected/],
  [`/runs/${LONG}`, 'Run', /There is no run/],
  ['/runs/%E0%A4%A', 'Run', /There is no run/],
  [`/streams/${LONG}`, 'Stream', /There is no such stream/],
  [`/events?event=${LONG}`, 'Events', /There is no event/],
  [`/functions?project=${LONG}`, 'Functions', /There is no project/],
  ['/history?from=nonsense', 'Audit', /^from: expected/],
  ['/history?as_of=nonsense', 'Audit', /^as_of: expected/],
  ['/history?show=constructor', 'Audit', /There is none now/],
  ['?range=constructor', 'Overview', /No function has run yet/],
  ['/operator?section=constructor', 'Operator', /Organizations/],
]

story('each shows its page, and says what is wrong with it', async ({ chromium, server }) => {
  const { page, go, errors } = await openDashboard(chromium, server, { path: '/operator' })
  await signInAsOperator({ page, server })
  for (const [path, heading, text] of STRANGE) {
    await go(path)
    await page.getByRole('heading', { level: 1, name: heading, exact: true }).waitFor()
    await page.getByRole('main').getByText(text).first().waitFor()
    const overflow = Number(await page.evaluate('document.documentElement.scrollWidth - innerWidth'))
    assert.ok(overflow <= 0, `Expected no horizontal scrolling of ${path.slice(0, 40)}, got ${overflow} px`)
  }
  const others = errors.filter((line) => !/the server responded with a status of 4\d\d/.test(line))
  assert.equal(others, [])
})

story.run()
