import { existsSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { answering } from '../support/answering.ts'
import { type Embedded, put, spawnEmbedded } from '../support/backedUp.ts'
import { cli, cliJson, startCli } from '../support/cli.ts'
import { parseExposition } from '../support/exposition.ts'
import { furnish } from '../support/furnish.ts'
import { relaying } from '../support/relaying.ts'
import { suite } from '../support/suite.ts'
import { tempDir } from '../support/tempDir.ts'
import { answersOf } from '../support/transferred.ts'
import { until } from '../support/until.ts'

/** Files of the environment: their export and their import have many parts. */
const [FILES, FILE_BYTES] = [40, 500_000]

/** More than any other reply of these commands has. */
const LITTLE = 100_000

const sizeOf = (file: string): number => (existsSync(file) ? statSync(file).size : 0)

/** The facts in the log of the service. */
const factsOf = async ({ url, operator }: Embedded): Promise<number> =>
  parseExposition((await operator.send('GET', `${url}/metrics`)).text).sum('svc_log_facts')

const killed = suite<{ server: Embedded; dir: string }>('a kill -9', { timeoutMs: 240_000 })
killed.before(async (context) => {
  const server = await spawnEmbedded()
  await furnish(server.api)
  for (let n = 0; n < FILES; n++) await put(server, `many/${n}`, String(n % 10).repeat(FILE_BYTES))
  Object.assign(context, { server, dir: tempDir() })
})
killed.after(({ server }) => server.stop())

killed('of svc export leaves no file under its name, and says how to repeat it', async ({ server, dir }) => {
  const file = join(dir, 'a.svc')
  const part = `${file}.part`
  const whole = FILES * FILE_BYTES
  for (const after of [LITTLE, whole / 4, whole / 2]) {
    await answering(relaying(server.url, [], { after }), async (SVC_URL) => {
      const running = startCli(['export', 'local/dev', file], { env: { ...server.cliEnv, SVC_URL } })
      await until(() => sizeOf(part) >= after, { timeoutMs: 30_000 })
      running.process.kill('SIGKILL')
      assert.is(await running.ended, 'SIGKILL')
    })
    assert.not.ok(existsSync(file))
    const { code, err } = await cli(['export', 'local/dev', file], { env: server.cliEnv })
    assert.is(code, 1)
    assert.is(
      err,
      `svc: ${part} exists: another command writes it, or was killed; remove it if none does, and repeat this one\n`,
    )
    rmSync(part)
  }
  await cliJson(['export', 'local/dev', file], { env: server.cliEnv })
})

killed(
  'of the service ends svc export and svc files get with code 1, and leaves nothing',
  async ({ dir }) => {
    let server = await spawnEmbedded()
    for (let n = 0; n < FILES; n++) await put(server, `many/${n}`, 'x'.repeat(FILE_BYTES))
    await put(server, 'large', 'x'.repeat(FILES * FILE_BYTES))
    const commands = {
      'b.svc': ['export', 'local/dev', join(dir, 'b.svc')],
      large: ['files', 'get', 'large', join(dir, 'large')],
    }
    try {
      for (const [name, args] of Object.entries(commands)) {
        const { promise, resolve: release } = Promise.withResolvers<void>()
        await answering(relaying(server.url, [], { after: LITTLE, until: promise }), async (SVC_URL) => {
          const running = startCli(args, { env: { ...server.cliEnv, SVC_URL } })
          await until(() => sizeOf(join(dir, `${name}.part`)) > 0, { timeoutMs: 30_000 })
          await server.end('SIGKILL')
          release()
          assert.is(await running.ended, 1)
          assert.match(
            running.err(),
            /^svc: the reply of the service at \S+ is incomplete \(\w+\): see svc status, then repeat the command\n$/,
          )
        })
        assert.equal(
          readdirSync(dir).filter((each) => each.startsWith(name)),
          [],
        )
        server = await spawnEmbedded(server.dataDir)
        await cliJson(args, { env: server.cliEnv })
      }
    } finally {
      await server.stop()
    }
  },
)

killed(
  'of the service at any moment of svc import leaves an import that is continued',
  async ({ server, dir }) => {
    const file = join(dir, 'a.svc')
    const { facts } = await cliJson<{ facts: number }>(['export', 'local/dev', join(dir, 'c.svc')], {
      env: server.cliEnv,
    })
    let target = await spawnEmbedded()
    const before = await factsOf(target)
    const codes: unknown[] = []
    for (const share of [0, 0.1, 0.3, 0.6, 0.9, 1]) {
      const running = startCli(['import', file], { env: target.cliEnv })
      await until(async () => (await factsOf(target)) >= before + share * facts, { everyMs: 0 })
      await target.end('SIGKILL')
      codes.push(await running.ended)
      target = await spawnEmbedded(target.dataDir)
    }
    assert.is(codes[0], 1)
    assert.equal(
      codes.filter((code) => code !== 1 && code !== 0),
      [],
      'one may have ended before its kill',
    )
    try {
      await cliJson(['import', file], { env: target.cliEnv })
      const [expected, now] = [await answersOf(server, server.api), await answersOf(target, target.api)]
      for (const [path, answer] of Object.entries(expected)) assert.is(now[path], answer, path)
    } finally {
      await target.stop()
    }
  },
)

killed('is not needed: an export that fails by itself leaves no transfer key', async ({ server, dir }) => {
  const file = join(dir, 'nowhere', 'a.svc')
  const { code } = await cli(['export', 'local/dev', file, '--key-file', join(dir, 'own.key')], {
    env: server.cliEnv,
  })
  assert.is(code, 1)
  assert.not.ok(existsSync(join(dir, 'own.key')))
})
killed.run()
