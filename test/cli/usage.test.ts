import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { answering } from '../support/answering.ts'
import { cli, svc } from '../support/cli.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

const TOKEN = 'x'.repeat(32)

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

for (const [args, label] of [
  [['backup', ''], 'DIR'],
  [['backup', 'verify', ''], 'DIR'],
  [['restore', ''], 'DIR'],
  [['restore', 'x', '--secrets', ''], '--secrets'],
  [['export', 'local/dev', ''], 'FILE'],
  [['import', ''], 'FILE'],
  [['import', 'x', '--key-file', ''], '--key-file'],
  [['audit', 'export', ''], 'file'],
  [['audit', 'verify', ''], 'file'],
  [['audit', '--from', ''], '--from'],
  [['audit', '--env', ''], '--env'],
  [['orgs', 'show', ''], 'org'],
  [['envs', 'show', ''], 'env'],
  [['projections', 'rebuild', ''], 'name'],
  [['files', 'put', ''], 'file'],
  [['dev', ''], 'FOLDER'],
  [['init', ''], 'folder'],
] as const)
  usage(`refuses an empty ${label} of ${args[0]} ${args[1]}, which names nothing`, async () => {
    const { code, out, err } = await cli(args)
    assert.equal([code, out], [2, ''])
    assert.is(err, `svc: ${label}: expected a value, got nothing\n`)
  })

usage('explains a group that has a command of its own, with the options of that command', async () => {
  for (const args of [
    ['audit', '--help'],
    ['help', 'audit'],
    ['audit', '--type', 'X', '--help'],
  ]) {
    const { code, out } = await cli(args)
    assert.is(code, 0)
    assert.match(out, /^Usage: svc audit \[options\]\n/)
    assert.match(out, '--follow')
    assert.match(out, /^ {2}svc audit replay /m)
    assert.not.match(out, /^ {2}svc audit {2}/m)
  }
  const { code, err } = await cli(['audit', 'replya'])
  assert.equal([code, err], [2, "svc: unknown command 'replya'; run svc audit --help\n"])
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
usage('reports a result that cannot be written, and ends with code 1', async () => {
  const full = openSync('/dev/full', 'w')
  const child = spawn(process.execPath, [svc, '--help'], { stdio: ['ignore', full, 'pipe'] })
  closeSync(full)
  let err = ''
  child.stderr?.on('data', (chunk: Buffer) => (err += chunk.toString()))
  assert.equal(await once(child, 'close'), [1, null])
  assert.match(err, /^svc: the result cannot be written: ENOSPC.*\n$/)
})

usage('ends quietly when its reader has seen enough', async () => {
  const child = spawn('sh', ['-c', '"$0" "$1" --help 2>&1 | true', process.execPath, svc])
  let shown = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (shown += chunk.toString()))
  await once(child, 'close')
  assert.is(shown, '')
})
usage.run()

const replies = suite('svc at an address', { timeoutMs: 60_000 })

const status = (url: string) =>
  cli(['secrets', 'status'], { env: { SVC_URL: url, SVC_OPERATOR_TOKEN: TOKEN } })

replies('where nothing listens ends with code 1, and explains how to start the service', async () => {
  const gone = 'http://127.0.0.1:2' // a port of the system, which no other test is given
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

replies('whose reply is cut off ends with code 1 and one line', async () => {
  await answering(
    (_, response) => {
      response.writeHead(200, { 'content-length': 100 }).write('{"data":')
      setImmediate(() => response.destroy())
    },
    async (url) => {
      const expected = `svc: the reply of the service at ${url} is incomplete (`
      for (const args of [['secrets', 'status'], ['status']]) {
        const { code, out, err } = await cli(args, { env: { SVC_URL: url, SVC_OPERATOR_TOKEN: TOKEN } })
        assert.equal([code, out], [1, ''])
        assert.ok(err.startsWith(expected), err)
        assert.is(err.trimEnd().split('\n').length, 1)
      }
    },
  )
})

replies('that accepts connections and never replies ends with code 1', async () => {
  await answering(
    () => {},
    async (url) => {
      const { code, out, err } = await cli(['status'], { env: { SVC_URL: url } })
      assert.equal([code, out], [1, ''])
      assert.match(err, /^svc: the service at \S+ does not answer \(no reply within 10 s\)/)
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
