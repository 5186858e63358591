import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { type Browser, chromium, type ConsoleMessage, type Page } from 'playwright-core'
import { reportExercised, reportMissing } from './engines.ts'
import { PATIENCE, SLACK } from './patience.ts'

/** The shell has the same engine without the windows around it, which cost a quarter of the processor time of a test. */
const PROGRAMS = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome'] as const

/** The time that a page has to show what a test waits for. */
const WAIT_MS = 10_000

/** The time that the browser has to start; an idle machine needs a second. */
const LAUNCH_MS = 120_000

const executable = (): string | undefined =>
  PROGRAMS.flatMap((program) =>
    (process.env['PATH'] ?? '').split(delimiter).map((dir) => join(dir, program)),
  ).find(existsSync)

/**
 * Whether a real Chromium is here. Without it, the caller skips its tests, and the run reports this at its end.
 * `SVC_TEST_CHROMIUM=required`: the tests run, and fail.
 */
export const hasChromium = (): boolean => {
  if (executable() !== undefined) {
    reportExercised('Chromium')
    return true
  }
  reportMissing('Chromium: the program chromium (Debian: apt-get install chromium-headless-shell)')
  return process.env['SVC_TEST_CHROMIUM'] === 'required'
}

export interface OpenPage {
  readonly page: Page
  /** What the page has written to its console as an error, and what it has thrown; it grows while the page is open. */
  readonly errors: readonly string[]
}

export interface Chromium {
  /** Opens a page with a profile of its own: no cache, storage or cookies of another page. */
  open(url: string): Promise<OpenPage>
  close(): Promise<void>
}

/** The browser reports the 401 that a page gets when it asks whether there is a session. */
const isSignedOut = (line: ConsoleMessage): boolean =>
  line.text().includes('401') && line.location().url.endsWith('/sign-in')

/** Starts the Chromium of this machine without a window. */
export const startChromium = async (): Promise<Chromium> => {
  const executablePath = executable()
  if (executablePath === undefined)
    throw new Error(`Expected one of ${PROGRAMS.join(', ')} in PATH, got none`)
  const isRoot = process.getuid?.() === 0
  // Its sandbox needs a user who is not root; the pages are ours. `/dev/shm` of a container is small.
  const args = [...(isRoot ? ['--no-sandbox'] : []), '--disable-dev-shm-usage']
  const browser: Browser = await chromium.launch({ executablePath, args, timeout: LAUNCH_MS })
  return {
    open: async (url) => {
      const page = await (await browser.newContext()).newPage()
      page.setDefaultTimeout(WAIT_MS * PATIENCE * SLACK)
      const errors: string[] = []
      page.on('pageerror', ({ message }) => errors.push(message))
      page.on('console', (line) => {
        if (line.type() === 'error' && !isSignedOut(line)) errors.push(line.text())
      })
      await page.goto(url)
      return { page, errors }
    },
    close: () => browser.close(),
  }
}
