import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { deploy, type Webhook } from '../support/build.ts'
import { startServer } from '../support/server.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

/** Proves what it saw by hashes: what a handler returns is its own to tell, and is kept. */
const HOOK = {
  'hook.js': `import { createHash } from 'node:crypto'
    import { fn } from 'svc'
    const hash = (text) => createHash('sha256').update(text).digest('hex')
    export const hook = fn(
      { webhook: { service: 'bank', path: '/paid' }, 'secret-headers': ['X-Signature'] },
      ({ headers, ...request }) => [headers.authorization, headers.cookie, headers['x-signature'], request['original-url']].map(hash),
    )`,
}

const hash = (text: string): string => createHash('sha256').update(text).digest('hex')

/** Every file of a data directory but the one that is there to hold secrets. */
const filesOf = (dir: string): string[] =>
  readdirSync(dir, { recursive: true, encoding: 'utf8' })
    .map((name) => join(dir, name))
    .filter((file) => statSync(file).isFile() && !file.endsWith('secrets.json'))

const secrets = suite('secrets (I6)')

secrets('of a webhook reach its handler and stand nowhere in clear', async () => {
  const dataDir = tempDir()
  const server = await startServer({ dataDir })
  await deploy(server.api, 'bank', HOOK)
  const [webhook] = (await server.api.page<Webhook>('/projects/bank/webhooks')).data
  const url = `${webhook?.url}?page=1`
  const headers = {
    Authorization: 'Bearer planted-bearer',
    cookie: 'planted-cookie',
    'x-signature': 'planted-signature',
  }
  const { status, json } = await server.api.send('POST', url, { headers, body: { paid: true } })
  assert.is(status, 200)
  assert.equal(json, [...Object.values(headers), url].map(hash))
  await server.stop()

  const planted = [
    'planted-bearer',
    'planted-cookie',
    'planted-signature',
    webhook?.url.split('/').at(-1) ?? '',
    server.api.key.slice(-49),
  ]
  for (const file of filesOf(dataDir)) {
    const bytes = readFileSync(file)
    for (const secret of planted) assert.not(bytes.includes(secret), `${file} holds ${secret}`)
  }
  for (const secret of planted) assert.not(server.log.join('').includes(secret), `the log holds ${secret}`)
})

secrets.run()
