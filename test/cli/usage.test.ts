import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { cli } from '../support/cli.ts'
import { freePort } from '../support/freePort.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

const TOKEN = 'x'.repeat(32)

/** Runs `work` with the URL of a server that answers so. */
const answering = async (answer: RequestListener, work: (url: string) => Promise<void>): Promise<void> => {
  const server = createServer(answer).listen(0, '127.0.0.1')
  await once(server, 'listening')
  try {
    await work(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  } finally {
    server.close()
    server.closeAllConnections()
  }
}

const usage = suite('svc')

usage('explains itself, its groups and its commands, with examples', async () => {
  for (const args of [
    [],
    ['--help'],
    ['secrets'],
    ['secrets', '--help'],
    ['secrets', 'rotate-master', '--help'],
  ]) {
    const { code, out, err } = await cli(args)
    assert.equal([code, err], [0, ''])
    assert.match(out, 'svc secrets rotate-master')
    assert.match(out, 'SVC_OPERATOR_TOKEN')
  }
  assert.match((await cli(['secrets', 'rotate-master', '--help'])).out, 'Examples:')
})

for (const args of [
  ['nope'],
  ['secrets', 'nope'],
  ['secrets', 'status', '--nope'],
  ['secrets', 'status', 'more'],
])
  usage(`ends ${args.join(' ')} with code 2 and one line`, async () => {
    const { code, out, err } = await cli(args)
    assert.equal([code, out], [2, ''])
    assert.match(err, /^svc: .*--help\n$/)
  })

usage('prints its version', async () => {
  assert.match((await cli(['--version'])).out, /^\d+\.\d+\.\d+\n$/)
})

usage('without an operator token ends with code 1, and creates no secrets', async () => {
  const SVC_DATA_DIR = join(tempDir(), 'none')
  const { code, err } = await cli(['secrets', 'operator-token'], { env: { SVC_DATA_DIR } })
  assert.is(code, 1)
  assert.match(err, /^svc: no operator token .*SVC_OPERATOR_TOKEN.*\n$/)
  assert.not(existsSync(SVC_DATA_DIR))
})

usage('refuses a token that no header can contain, without the token in its output', async () => {
  const SVC_OPERATOR_TOKEN = `secret${'x'.repeat(32)}\nsecret`
  const { code, out, err } = await cli(['secrets', 'status'], { env: { SVC_OPERATOR_TOKEN } })
  assert.is(code, 1)
  assert.match(err, /^svc: SVC_OPERATOR_TOKEN: expected .*\n$/)
  assert.not.match(out + err, 'secret')
})
usage.run()

const replies = suite('svc at an address')

const status = (url: string) =>
  cli(['secrets', 'status'], { env: { SVC_URL: url, SVC_OPERATOR_TOKEN: TOKEN } })

replies('where nothing listens ends with code 1, and explains how to start the service', async () => {
  const gone = `http://127.0.0.1:${await freePort()}`
  const { code, out, err } = await status(gone)
  assert.equal([code, out], [1, ''])
  assert.is(
    err,
    `svc: the service at ${gone} does not answer (ECONNREFUSED): start it with svc serve, or set SVC_URL\n`,
  )
})

replies('of another server ends with code 1, and names the address', async () => {
  await answering(
    (_, response) => response.end('<html>\x1b[2Jhello</html>'),
    async (url) => {
      assert.equal(await status(url), {
        code: 1,
        out: '',
        err: `svc: ${url} is not svc: its reply is not JSON with data\n`,
      })
    },
  )
})

replies('of a proxy ends with code 1, with the beginning of its reply on one line', async () => {
  await answering(
    (_, response) => response.writeHead(502).end(`<html>\x1b[2J\n${'x'.repeat(1000)}`),
    async (url) => {
      const { code, err } = await status(url)
      assert.is(code, 1)
      assert.ok(err.startsWith(`svc: ${url} replied 502: <html>\\u001b[2J\\u000axxx`), err)
      assert.ok(err.length < 400)
    },
  )
})

replies('that redirects ends with code 1, and sends the token nowhere else', async () => {
  await answering(
    (_, response) => response.writeHead(301, { location: 'https://other.example/' }).end(),
    async (url) => {
      const { code, err } = await status(url)
      assert.is(code, 1)
      assert.match(err, 'replied 301: a redirect to https://other.example/')
    },
  )
})

replies('whose service fails ends with code 1, and names the request for the log', async () => {
  const error = { code: 'internal_server_error', message: 'Something failed', request_id: 'r-1' }
  await answering(
    (_, response) => response.writeHead(500).end(JSON.stringify({ error })),
    async (url) => {
      const { code, err } = await status(url)
      assert.equal([code, err], [1, `svc: ${url} replied 500: Something failed (request r-1)\n`])
    },
  )
})
replies.run()
