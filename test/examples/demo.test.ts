import * as assert from 'uvu/assert'
import { signedIn } from '../support/dashboard.ts'
import { freePort } from '../support/freePort.ts'
import { openApi } from '../support/http.ts'
import { EMBEDDED } from '../support/installation.ts'
import { launch } from '../support/launch.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

const demo = suite('the demo', { timeoutMs: 60_000 })

/** Runs the demo until `work` has ended. */
const withDemo = async (
  SVC_DATA_DIR: string,
  work: (printed: { readonly url: string; readonly key: string; readonly token: string }) => Promise<void>,
): Promise<void> => {
  const { PATH, HOME } = process.env
  const { ready, stop } = await launch([process.execPath, 'examples/demo.ts'], {
    cwd: process.cwd(),
    env: { PATH, HOME, ...EMBEDDED, PORT: String(await freePort()), SVC_DATA_DIR },
    ready: /[^]*Ctrl-C stops/,
  })
  try {
    const [, url = ''] = /svc is ready: (\S+)/.exec(ready) ?? []
    const [, key = ''] = /SVC_KEY=(\S+)/.exec(ready) ?? []
    const [, token = ''] = /operator token: (\S+)/.exec(ready) ?? []
    await work({ url, key, token })
  } finally {
    await stop()
  }
}

demo('prints the credentials for all pages of the dashboard', () =>
  withDemo(tempDir(), async ({ url, key, token }) => {
    await signedIn(url, key)
    await signedIn(url, token, '/operator/sign-in')
  }),
)

demo('deploys its functions once, however often it starts', async () => {
  const dataDir = tempDir()
  for (let start = 0; start < 2; start++)
    await withDemo(dataDir, async ({ url, key }) => {
      const builds = await openApi(url, key).page('/projects/hello/builds')
      assert.is(builds.pagination.total, 1)
    })
})

demo.run()
