import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import * as assert from 'uvu/assert'
import { silent } from '../../src/logger.ts'
import { readConfig } from '../../src/process/config.ts'
import { openSandbox } from '../../src/process/openSandbox.ts'
import { messageOf } from '../../src/errors.ts'
import { hasBubblewrap, mounting } from '../support/bubblewrap.ts'
import { installation } from '../support/installation.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'

const isRoot = process.getuid?.() === 0
const hasNamespaces = process.env['SVC_TEST_NAMESPACE'] === 'required'

const opening = suite('the sandbox at the start')

/** Opens the sandbox and closes it again. */
const open = async (env: Readonly<Record<string, string>> = {}, lacks: { users?: string } = {}) => {
  const closers: (() => void)[] = []
  const config = readConfig({ SVC_DATA_DIR: tempDir(), ...env })
  try {
    return await openSandbox({
      config,
      codeDir: null,
      logger: silent,
      onClose: (close) => void closers.push(close),
      ...(lacks.users !== undefined && { openUsers: () => Promise.reject(new Error(lacks.users)) }),
    })
  } finally {
    for (const close of closers) close()
  }
}

const refusal = async (...given: Parameters<typeof open>): Promise<string> => {
  try {
    return `Expected a refusal, got the ${(await open(...given)).info.tier} tier`
  } catch (error) {
    return messageOf(error)
  }
}

opening('uses the required tier', async () => {
  const { info } = await open({ SVC_SANDBOX: 'process' })
  assert.equal(info, { tier: 'process', reason: 'SVC_SANDBOX=process' })
})

opening('uses the strongest tier that works', async () => {
  const { info } = await open()
  if (hasNamespaces) assert.is(info.tier, 'namespace')
  else assert.ok(info.reason)
})

opening('refuses a tier that does not exist', async () => {
  assert.match(await refusal({ SVC_SANDBOX: 'none' }), 'SVC_SANDBOX: expected auto, process or namespace')
})

if (hasBubblewrap)
  opening('ends the start where SVC_SANDBOX=namespace does not work', async () => {
    const withoutBubblewrap = mounting('--ro-bind', '/dev/null', '/usr/bin/bwrap')
    const [command, ...args] = [...withoutBubblewrap, process.execPath, 'src/main.ts'] as const
    const service = spawn(command, args, {
      env: { ...process.env, ...installation(tempDir(), { SVC_SANDBOX: 'namespace' }) },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    const ended = once(service, 'exit')
    assert.match(await text(service.stderr), /^svc: SVC_SANDBOX=namespace does not work here: .*\n$/)
    assert.equal(await ended, [1, null])
  })

opening('counts a lack of file descriptors as one of room, which passes', async () => {
  const script = new URL('../fixtures/sandbox/withoutDescriptors.ts', import.meta.url).pathname
  const command = 'ulimit -n 100; exec "$0" "$1" "$2"'
  const { stdout } = await promisify(execFile)('sh', ['-c', command, process.execPath, script, '/bin/true'])
  assert.equal(JSON.parse(stdout), {
    message: 'The service has no file descriptors left',
    lacksRoom: true,
    refusal: null,
    slow: ['/bin/true could not be started: spawn /bin/true EMFILE; trying again'],
  })
})

if (isRoot) {
  opening('gives the children of root users of their own, and a cache that they can enter', async () => {
    const { options, cacheDir } = await open()
    assert.ok(options.users)
    assert.match(cacheDir, /^\/var\/tmp\/svc-/)
  })

  opening('refuses root if children cannot have users of their own', async () => {
    assert.match(
      await refusal({}, { users: 'setuid is forbidden' }),
      /runs as root.*setuid is forbidden.*set SVC_ALLOW_ROOT=1/,
    )
    const { options, cacheDir } = await open({ SVC_ALLOW_ROOT: '1' }, { users: 'setuid is forbidden' })
    assert.is(options.users, undefined)
    assert.not.match(cacheDir, '/var/tmp/svc-')
  })
}

opening.run()
