import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as assert from 'uvu/assert'
import { openEventStoreDb } from '../../../src/adapters/eventstoredb/index.ts'
import { isAppError, messageOf } from '../../../src/errors.ts'
import { newId } from '../../../src/ids.ts'
import { fact, failureOf, payloadOf } from '../../contracts/eventStore/facts.ts'
import { openSurely } from '../../contracts/eventStore/openEventStoreDb.ts'
import { createAuthority } from '../../support/certificates.ts'
import type { Login } from '../../support/eventstoredb/authenticating.ts'
import { type StandIn, startStandIn } from '../../support/eventstoredb/index.ts'
import { Log } from '../../support/eventstoredb/log.ts'
import { suite } from '../../support/suite.ts'
import { tempDir } from '../../support/tempDir.ts'
import { until } from '../../support/until.ts'
import { payloadsIn, readersOf } from './harness.ts'

const login = { username: 'admin', password: 'changeit' }
const authority = createAuthority()
const other = createAuthority()
const certificate = authority.issue('DNS:localhost', 'IP:127.0.0.1')

const tls = suite('EventStoreDB adapter: TLS and users', { timeoutMs: 60_000 })

type Secured = { count?: number; issued?: typeof certificate; user?: Login; clientsOf?: Buffer }

/** One or two secured nodes with one log, and their address without a scheme. */
const secured = async (
  work: (nodes: readonly StandIn[], at: (host: string) => string) => Promise<void>,
  { count = 1, issued = certificate, user = login, ...certified }: Secured = {},
): Promise<void> => {
  const log = new Log()
  const nodes: StandIn[] = []
  for (let i = 0; i < count; i++)
    nodes.push(await startStandIn({ log, security: { ...issued, login: user, ...certified } }))
  const [leader, ...followers] = nodes
  for (const follower of followers) if (leader) follower.misbehave.follow(leader)
  try {
    await work(nodes, (host) => nodes.map(({ port }) => `${host}:${port}`).join())
  } finally {
    for (const node of nodes) await node.stop()
  }
}

const trusted = `tls=true&tlsCAFile=${encodeURIComponent(authority.file)}`

for (const [what, host, count] of [
  ['a node that is named by its host name', 'localhost', 1],
  ['a node that is named by its IP address', '127.0.0.1', 1],
  ['a cluster whose gossip names IP addresses', 'localhost', 2],
] as const) {
  tls(`${what} serves reads, appends, subscriptions and groups`, () =>
    secured(
      async (_, at) => {
        const store = await openSurely(`esdb://admin:changeit@${at(host)}?${trusted}`)
        const stream = `t-${newId()}`
        const readers = readersOf(store, stream)
        await store.append(stream, [fact(stream, 'sealed')], 'none')
        assert.equal(await payloadsIn(store, stream), ['sealed'])
        for (const seen of [readers.log, readers.own, readers.group]) await until(() => seen().length === 1)
        await store.expire(stream, 60)
        await readers.stop()
        await store.close()
      },
      { count },
    ),
  )
}

/** The one line with which opening an address ends. */
const refusal = async (url: string): Promise<string> => {
  const error = await failureOf(openEventStoreDb(url))
  assert.ok(isAppError(error, 'bad_request'), String(error))
  assert.match(error.message, /^SVC_EVENT_STORE: esdb:\/\/[^@]+: /)
  assert.not.match(error.message, '\n')
  assert.not.match(error.message, 'planted')
  return error.message
}

for (const [what, user] of [
  ['a wrong password', 'admin:planted@'],
  ['an unknown user', 'planted:changeit@'],
  ['no user', ''],
] as const) {
  tls(`${what} ends the start`, () =>
    secured(async (_, at) =>
      assert.match(
        await refusal(`esdb://${user}${at('127.0.0.1')}?${trusted}`),
        /refused the user or password/,
      ),
    ),
  )
}

tls('a certificate of the client replaces the user in every call', () =>
  secured(
    async (_, at) => {
      const { key, cert } = authority.issue('DNS:svc')
      const dir = tempDir()
      const file = (name: string, bytes: Buffer) => {
        writeFileSync(join(dir, name), bytes)
        return encodeURIComponent(join(dir, name))
      }
      const own = `userKeyFile=${file('user.key', key)}&userCertFile=${file('user.pem', cert)}`
      const store = await openSurely(`esdb://${at('localhost')}?${trusted}&${own}`)
      const stream = `t-${newId()}`
      const readers = readersOf(store, stream)
      await store.append(stream, [fact(stream, 'sealed')], 'none')
      for (const seen of [readers.log, readers.own, readers.group]) await until(() => seen().length === 1)
      for (const seconds of [60, null]) await store.expire(stream, seconds)
      await readers.stop()
      await store.close()
    },
    { user: { ...login, isOptional: true }, clientsOf: readFileSync(authority.file) },
  ),
)

tls('a certificate of an unknown authority ends the start and names tlsCAFile', () =>
  secured(async (_, at) => {
    for (const host of ['localhost', '127.0.0.1']) {
      for (const options of ['tls=true', `tls=true&tlsCAFile=${encodeURIComponent(other.file)}`])
        assert.match(await refusal(`esdb://admin:planted@${at(host)}?${options}`), /set tlsCAFile/)
    }
  }),
)

tls('a cluster with a certificate of an unknown authority ends the start too', () =>
  secured(
    async (_, at) =>
      assert.match(await refusal(`esdb://admin:planted@${at('127.0.0.1')}?tls=true`), /set tlsCAFile/),
    { count: 2 },
  ),
)

tls('a certificate for another name or address ends the start', () =>
  secured(
    async (_, at) => {
      for (const host of ['localhost', '127.0.0.1'])
        assert.match(
          await refusal(`esdb://admin:planted@${at(host)}?${trusted}`),
          /certificate cannot be verified/,
        )
    },
    { issued: authority.issue('DNS:elsewhere', 'IP:10.1.2.3') },
  ),
)

tls('a file that is missing and a node without TLS end the start', async () => {
  await secured(async (_, at) => {
    assert.match(
      await refusal(`esdb://admin:planted@${at('localhost')}?tls=true&tlsCAFile=/not/there`),
      /file/,
    )
  })
  const open = await startStandIn()
  assert.match(await refusal(`esdb://admin:planted@127.0.0.1:${open.port}?tls=true`), /set tls=false/)
  await open.stop()
})

tls('a login that the server refuses for a while is an outage', () => {
  const user = { ...login }
  return secured(
    async ([node], at) => {
      const store = await openSurely(`esdb://admin:changeit@${at('127.0.0.1')}?${trusted}`)
      const stream = `t-${newId()}`
      const readers = readersOf(store, stream)
      await store.append(stream, [fact(stream, 0)], 'none')
      for (const seen of [readers.log, readers.own, readers.group]) await until(() => seen().length === 1)
      user.password = 'replaced'
      await node?.stop() // otherwise calls that are open continue
      await node?.restart()
      const one = fact(stream, 1)
      const asks = [() => store.head(), () => store.append(stream, [one], 0), () => store.expire(stream, 60)]
      for (const ask of asks) {
        const failure = await until(async () => {
          const found = await failureOf(ask())
          return messageOf(found).includes('refused the user or password') && found
        })
        assert.ok(isAppError(failure, 'unavailable'))
      }
      user.password = login.password
      await until(() => store.append(stream, [one], 0))
      for (const seen of [readers.log, readers.own, readers.group]) await until(() => seen().length === 2)
      await readers.stop()
      await store.close()
    },
    { user },
  )
})

tls('a node that was killed is found again', () =>
  secured(async ([node], at) => {
    const store = await openSurely(`esdb://admin:changeit@${at('127.0.0.1')}?${trusted}`)
    const stream = `t-${newId()}`
    const readers = readersOf(store, stream)
    await store.append(stream, [fact(stream, 0)], 'none')
    await until(() => readers.group().length === 1)
    await node?.stop()
    await node?.restart()
    const one = fact(stream, 1)
    await until(() => store.append(stream, [one], 0))
    await until(() => readers.group().length === 2)
    assert.equal((await Array.fromAsync(store.read(stream))).map(payloadOf), [0, 1])
    await readers.stop()
    await store.close()
  }),
)

tls(
  'the file of the authority may be missing when the leader pauses: the new leader is found when it is back',
  async () => {
    const replaced = createAuthority()
    const away = `${replaced.file}.old`
    await secured(
      async ([one, two], at) => {
        const store = await openSurely(
          `esdb://admin:changeit@${at('127.0.0.1')}?tls=true&tlsCAFile=${encodeURIComponent(replaced.file)}`,
        )
        const stream = `t-${newId()}`
        const readers = readersOf(store, stream)
        await store.append(stream, [fact(stream, 0)], 'none')
        await until(() => readers.log().length === 1)
        renameSync(replaced.file, away)
        one?.misbehave.silence()
        two?.misbehave.heal()
        const next = fact(stream, 1)
        assert.ok(isAppError(await failureOf(store.append(stream, [next], 0)), 'unavailable'))
        const failure = await failureOf(store.head())
        assert.ok(isAppError(failure, 'unavailable'))
        assert.match(String(failure.data['renewal']), 'certificate file')
        renameSync(away, replaced.file)
        await until(() => store.append(stream, [next], 0), { timeoutMs: 20_000 })
        await until(() => readers.log().length === 2, { timeoutMs: 20_000 })
        await readers.stop()
        await store.close()
      },
      { count: 2, issued: replaced.issue('DNS:localhost', 'IP:127.0.0.1') },
    )
  },
)

tls.run()
