import type { Page } from 'playwright-core'
import { readConfig } from '../../src/process/config.ts'
import { openSecrets } from '../../src/process/secretsFile.ts'
import { type Chromium, type OpenPage, startChromium } from './chromium.ts'
import { installation } from './installation.ts'
import { startServer, type TestServer } from './server.ts'

export interface Dashboard extends OpenPage {
  readonly server: TestServer
  /** Opens a page of the dashboard below `/ui` in the same window. */
  go(path: string): Promise<void>
}

/** Signs in with a key at the form that the dashboard shows. */
export const signIn = async (page: Page, token: string): Promise<void> => {
  await page.getByLabel(/API key|Operator token/).fill(token)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('navigation', { name: 'Pages' }).waitFor()
}

/** Opens the page of a key: `g` and the key in one go, because the page waits for the second one only for a moment. */
export const goByKey = async (page: Page, key: string): Promise<void> =>
  void (await Promise.all([page.keyboard.press('g'), page.keyboard.press(key)]))

/** The token of the operator of a server. */
export const operatorTokenOf = ({ dataDir }: Pick<TestServer, 'dataDir'>): string =>
  openSecrets(readConfig(installation(dataDir))).operatorToken

/** Signs in as the operator too, at the form in a page. */
export const signInAsOperator = async ({
  page,
  server,
}: Pick<Dashboard, 'page' | 'server'>): Promise<void> => {
  await page.getByLabel('Operator token').fill(operatorTokenOf(server))
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.getByLabel('Operator token').waitFor({ state: 'detached' })
}

/** Opens the dashboard of a server in a browser and signs in. */
export const openDashboard = async (
  chromium: Chromium,
  server: TestServer,
  { token = server.api.key, path = '/runs' }: { readonly token?: string; readonly path?: string } = {},
): Promise<Dashboard> => {
  const opened = await chromium.open(`${server.url}/ui${path}`)
  await signIn(opened.page, token)
  return {
    ...opened,
    server,
    go: async (to) => void (await opened.page.goto(`${server.url}/ui${to}`)),
  }
}

/** A browser and a service of its own; `stop` ends both. */
export const startDashboard = async (env: Readonly<Record<string, string>> = {}) => {
  const [server, chromium] = await Promise.all([startServer({ env }), startChromium()])
  return {
    server,
    chromium,
    stop: async () => {
      await chromium.close()
      await server.stop()
    },
  }
}

export type StartedDashboard = Awaited<ReturnType<typeof startDashboard>>
