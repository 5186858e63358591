import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import * as assert from 'uvu/assert'
import { messageOf } from '../../src/errors.ts'
import { prepareChildCode } from '../../src/sandbox/childCode.ts'
import { chooseSandbox, type SandboxInfo } from '../../src/sandbox/chooseSandbox.ts'
import { DEFAULT_OPTIONS } from '../../src/sandbox/limits.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

const namespaces = suite("the namespace tier without Node's permission model")

const ATTEMPTS = `
const fs = require('node:fs'), net = require('node:net'), { spawnSync } = require('node:child_process')
const attempt = (action) => { try { return action() ?? 'done' } catch (error) { return error.code } }
const found = {
  root: attempt(() => fs.readdirSync('/').sort().join()),
  etc: attempt(() => fs.readdirSync('/etc').length),
  processes: attempt(() => fs.readdirSync('/proc').filter((name) => Number(name)).join()),
  spawn: spawnSync('/usr/bin/node', ['-v']).error?.code ?? 'done',
  writeRoot: attempt(() => fs.writeFileSync('/x', '')),
  writeDev: attempt(() => fs.writeFileSync('/dev/x', '')),
  writeBuild: attempt(() => fs.writeFileSync('x', '')),
  writeTmp: attempt(() => fs.writeFileSync('/tmp/x', 'x')),
  user: process.getuid(),
  kernel: attempt(() => fs.openSync('/proc/sys/kernel/core_pattern', 'r+')),
  memory: attempt(() => fs.openSync('/proc/self/mem', 'r+')),
  map: attempt(() => fs.openSync('/proc/self/uid_map', 'r+')),
}
const connected = new Promise((resolve) => {
  const socket = net.connect(80, '127.0.0.1')
  socket.on('connect', () => resolve('connected'))
  socket.on('error', (error) => resolve(error.code))
})
connected.then((network) => console.log(JSON.stringify({ ...found, network })))
`

/** Runs the attempts with everything that the tier does, but without the options of Node. */
const outcomes = async (): Promise<Record<string, unknown> | string> => {
  const code = prepareChildCode(tempDir())
  const chosen = await chooseSandbox('namespace', code, DEFAULT_OPTIONS)
  if (typeof chosen === 'string') return chosen
  const dir = tempDir()
  writeFileSync(join(dir, 'attempts.cjs'), ATTEMPTS)
  const { args, input } = chosen.sandbox.start({
    node: DEFAULT_OPTIONS.node,
    nodeArgs: [],
    entry: join(dir, 'attempts.cjs'),
    dirs: [dir],
    dataMb: 1024,
    ownUser: false,
    nicer: 0,
  })
  const [command, ...rest] = args.filter((arg) => !/^--(?:permission|allow-)/.test(arg))
  const child = spawn(command ?? '', rest, {
    stdio: ['ignore', 'pipe', 'inherit', 'ignore', 'ignore', 'pipe'],
  })
  const [, stdout, , , , filter] = child.stdio as readonly unknown[]
  if (filter instanceof Writable) filter.end(input)
  const ended = once(child, 'exit')
  const output = stdout instanceof Readable ? await text(stdout) : ''
  await ended
  return JSON.parse(output) as Record<string, unknown>
}

/** No child starts in this time. */
const TOO_SHORT_MS = 1

namespaces(
  'is not replaced by the weaker one because a child starts slowly, and each attempt is reported',
  async () => {
    const code = prepareChildCode(tempDir())
    const { tier } = (await chooseSandbox('auto', code, DEFAULT_OPTIONS)) as SandboxInfo
    const slow: string[] = []
    const chosen = await chooseSandbox('auto', code, DEFAULT_OPTIONS, {
      probeMs: TOO_SHORT_MS,
      onSlow: (reason) => slow.push(reason),
    })
    assert.is(typeof chosen === 'string' ? chosen : chosen.tier, tier)
    assert.is(
      slow.find((reason) => reason.startsWith('No child')),
      `No child process became ready within 0.001 s in the ${tier} tier of the sandbox; trying again for 0.002 s`,
    )
  },
)

namespaces('waits for a slow child until the service stops', async () => {
  const code = prepareChildCode(tempDir())
  const stop = new AbortController()
  const ended = await chooseSandbox('auto', code, DEFAULT_OPTIONS, {
    probeMs: TOO_SHORT_MS,
    signal: stop.signal,
    onSlow: () => stop.abort(new Error('stopped')),
  }).catch(messageOf)
  assert.is(ended, 'stopped')
})

namespaces('contains files, processes and the network', async () => {
  const got = await outcomes()
  if (typeof got === 'string') {
    if (process.env['SVC_TEST_NAMESPACE'] === 'required') throw new Error(got)
    return
  }
  assert.equal(got, {
    root: got['root'],
    etc: 'ENOENT',
    processes: '1',
    spawn: 'EPERM',
    writeRoot: 'EROFS',
    writeDev: 'EROFS',
    writeBuild: 'EROFS',
    writeTmp: 'done',
    user: 65_534,
    kernel: 'EROFS',
    map: 'EROFS',
    memory: 'EROFS',
    network: 'EAFNOSUPPORT',
  })
  assert.not.match(String(got['root']), /etc|home|root|sys|run|work/)
})

namespaces.run()
