import { gunzipSync } from 'node:zlib'
import * as assert from 'uvu/assert'
import packageJson from '../../package.json' with { type: 'json' }
import { assembleImage } from '../support/dockerImage.ts'
import { EMBEDDED } from '../support/installation.ts'
import { launch } from '../support/launch.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

const dockerfile = suite('Dockerfile', { timeoutMs: 180_000 })

dockerfile('makes an image that serves the package, the documentation and the pages', async () => {
  const { dir, command } = await assembleImage()
  assert.is(`exec ${command.join(' ')}`, packageJson.scripts.start)
  const [, ...args] = command
  const { ready, stop } = await launch([process.execPath, ...args], {
    cwd: dir,
    env: { PATH: process.env['PATH'], ...EMBEDDED, PORT: '0', SVC_DATA_DIR: tempDir() },
    ready: /(?<="listens":")[^"]+/,
  })
  try {
    for (const path of ['/llms.txt', '/docs/functions.md', '/docs/guides/webhooks.md', '/docs', '/ui'])
      assert.is((await fetch(ready + path)).status, 200, path)
    const archive = await fetch(`${ready}/sdk/svc.tgz`)
    assert.is(archive.status, 200)
    const content = gunzipSync(Buffer.from(await archive.arrayBuffer())).toString('latin1')
    for (const path of packageJson.files) assert.match(content, `package/${path}`)
  } finally {
    await stop()
  }
})

dockerfile.run()
