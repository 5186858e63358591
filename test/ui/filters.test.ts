import * as assert from 'uvu/assert'
import { openDashboard } from '../support/openDashboard.ts'
import { stories } from '../support/stories.ts'

const story = stories('the filters of the dashboard')

const textIn = (url: URL): string | null => url.searchParams.get('text')

story('a filter keeps the text of its field while it is typed', async ({ server, chromium }) => {
  const { page } = await openDashboard(chromium, server, { path: '/runs' })
  const field = page.getByLabel('Text')
  await field.pressSequentially('a ')
  await page.waitForURL((url) => textIn(url) === 'a')
  await field.pressSequentially('b')
  await page.waitForURL((url) => textIn(url) !== 'a')
  assert.is(textIn(new URL(page.url())), 'a b')
  assert.is(await field.inputValue(), 'a b')
})

story.run()
