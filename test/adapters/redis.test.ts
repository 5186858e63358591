import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { Redis } from 'ioredis'
import * as assert from 'uvu/assert'
import { openRedisHints, openRedisRateLimiter } from '../../src/adapters/redis/index.ts'
import { isAppError } from '../../src/errors.ts'
import { newId } from '../../src/ids.ts'
import { type Logger, openLogger, silent } from '../../src/logger.ts'
import type { RateLimiter } from '../../src/ports/rateLimiter.ts'
import { hintsContract } from '../contracts/hints.ts'
import { rateLimiterContract } from '../contracts/rateLimiter.ts'
import { engineUrl } from '../support/engines.ts'
import { openFaultProxy } from '../support/faultProxy.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

const limit = { perSecond: 0.01, burst: 3 }

const recorder = (): { logger: Logger; lines: string[] } => {
  const lines: string[] = []
  return { logger: openLogger((line) => lines.push(line)), lines }
}

/** Counts how many of `count` takes were allowed. */
const takeMany = async (limiter: RateLimiter, key: string, count: number): Promise<number> => {
  const verdicts = await Promise.all(Array.from({ length: count }, () => limiter.take(key, limit)))
  return verdicts.filter(({ allowed }) => allowed).length
}

/** Accepts connections and replies to each chunk with the result of `answer`; null means no reply. */
const listen = async (answer: (received: string) => string | null) => {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('data', (data) => {
      const text = answer(String(data))
      if (text !== null) socket.write(text)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    close: () => {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

const away = suite('an unavailable Redis')

away('does not prevent opening: the node limits rates on its own and logs this once', async () => {
  const { port, close } = await listen(() => null)
  close() // nothing listens on that port any more
  const { logger, lines } = recorder()
  const url = `redis://:topsecret@127.0.0.1:${port}/0`
  const limiter = await openRedisRateLimiter(url, logger)
  assert.is(await takeMany(limiter, 'a', 10), 3)
  await limiter.close()
  assert.is(lines.length, 1, lines.join(''))
  assert.match(lines[0] ?? '', `127.0.0.1:${port}`)
  assert.not.match(lines[0] ?? '', 'topsecret')
})

away('does not prevent hints within the process', async () => {
  const { port, close } = await listen(() => null)
  close()
  const { logger, lines } = recorder()
  const hints = await openRedisHints(`redis://127.0.0.1:${port}`, logger)
  const heard: string[] = []
  hints.on('wanted', (text) => heard.push(text))
  hints.publish('wanted', 'a')
  await until(() => heard.length > 0)
  assert.not.ok(hints.connected)
  await hints.close()
  assert.equal(heard, ['a'])
  assert.is(lines.length, 1, lines.join(''))
})

away('that accepts connections and never replies prevents neither opening nor a request', async () => {
  const { port, close } = await listen(() => null)
  const limiter = await openRedisRateLimiter(`redis://127.0.0.1:${port}`, silent)
  assert.is(await takeMany(limiter, 'a', 10), 3)
  await limiter.close()
  close()
})

away('with a wrong password is refused at open, without the password in the message', async () => {
  const { port, close } = await listen((text) =>
    '-WRONGPASS invalid username-password pair or user is disabled.\r\n'.repeat(
      [...text.matchAll(/^\*/gm)].length,
    ),
  )
  for (const open of [openRedisHints, openRedisRateLimiter]) {
    const failure = await open(`redis://:topsecret@127.0.0.1:${port}`, silent).then(
      () => undefined,
      (error: unknown) => error,
    )
    assert.ok(isAppError(failure, 'bad_request'))
    assert.match(failure.message, 'SVC_REDIS')
    assert.not.match(failure.message, 'topsecret')
  }
  close()
})

away('with an invalid URL is refused with the setting and without the secret', async () => {
  const bad = [
    'redis://',
    'http://127.0.0.1',
    'redis://:topsecret@127.0.0.1:6379/one',
    'redis://:topsecret@127.0.0.1:6379/0?prefix=a b',
    'redis://:topsecret%ff@127.0.0.1:6379',
    'redis://:topsecret@127.0.0.1:99999',
  ]
  for (const url of bad) {
    const failure = await openRedisHints(url, silent).catch((error: unknown) => error)
    assert.ok(isAppError(failure, 'bad_request'), url)
    assert.match(failure.message, 'SVC_REDIS')
    assert.not.match(failure.message, 'topsecret')
  }
})

away.run()

const url = engineUrl('redis')
if (url === null) process.stdout.write('Redis was not exercised: SVC_TEST_REDIS names none\n')
else {
  /** The same server under a prefix of its own. */
  const own = (original = url, prefix = `svc-test-${newId()}:`): string => {
    const named = new URL(original)
    named.searchParams.set('prefix', prefix)
    return named.href
  }
  const withDatabase = (original: string, db: number): string =>
    Object.assign(new URL(original), { pathname: `/${db}` }).href
  const proxied = async () => {
    const { hostname, port } = new URL(url)
    const proxy = await openFaultProxy({ host: hostname, port: Number(port || 6379) })
    return { proxy, url: own(proxy.url(url)) }
  }

  /** Opens a limiter that does not count on its own when this machine, not Redis, pauses. */
  const openPatient = (at: string, logger: Logger = silent) =>
    openRedisRateLimiter(at, logger, { answerMs: 10_000 })

  rateLimiterContract('Redis', async () => {
    const limiter = await openPatient(own())
    return { limiter, close: () => limiter.close() }
  })

  hintsContract('Redis', async () => {
    const hints = await openRedisHints(own(), silent)
    return { hints, close: () => hints.close() }
  })

  const redis = suite('redis between nodes')

  redis('two nodes share one limit exactly', async () => {
    const shared = own()
    const [one, other] = [await openPatient(shared), await openPatient(shared)]
    const key = newId()
    const verdicts = await Promise.all(
      Array.from({ length: 100 }, (_, i) => (i % 2 ? one : other).take(key, { perSecond: 0.01, burst: 37 })),
    )
    assert.is(verdicts.filter(({ allowed }) => allowed).length, 37)
    await one.close()
    await other.close()
  })

  redis('a user, password or database that the server does not know is refused at open', async () => {
    const { host } = new URL(url)
    for (const wrong of [`redis://nobody:topsecret@${host}/0`, withDatabase(url, 9999)]) {
      for (const open of [openRedisHints, openRedisRateLimiter]) {
        const failure = await open(wrong, silent).catch((error: unknown) => error)
        assert.ok(isAppError(failure, 'bad_request'))
        assert.match(failure.message, host)
        assert.not.match(failure.message, 'topsecret')
      }
    }
  })

  redis('keys have the prefix and expire when the full burst is available again', async () => {
    const prefix = `svc-test-${newId()}:`
    const limiter = await openPatient(own(url, prefix))
    const admin = new Redis(url)
    await admin.ping()
    await limiter.take('a', { perSecond: 0.2, burst: 1 })
    assert.equal(await admin.keys(`${prefix}*`), [`${prefix}rate:a`])
    await until(async () => (await admin.keys(`${prefix}*`)).length === 0)
    await limiter.close()
    admin.disconnect()
  })

  redis('a node receives the hints of another node, and its own hints once', async () => {
    const shared = own()
    const [one, other] = [await openRedisHints(shared, silent), await openRedisHints(shared, silent)]
    const heard: string[] = []
    one.on('reached', (text) => heard.push(`one ${text}`))
    other.on('reached', (text) => heard.push(`other ${text}`))
    await until(() => one.connected && other.connected)
    one.publish('reached', 'a')
    await until(() => heard.length >= 2)
    other.publish('reached', 'b')
    await until(() => heard.length >= 4)
    assert.equal(heard.toSorted(), ['one a', 'one b', 'other a', 'other b'])
    await one.close()
    await other.close()
  })

  for (const [what, same] of [
    ['prefix', false],
    ['installation under the same prefix', true],
  ] as const) {
    redis(`another ${what} gets no hints`, async () => {
      const url = own()
      const [mine, theirs] = same ? [url, url] : [url, own()]
      const open = (at: string, installation: string) => openRedisHints(at, silent, installation)
      const all = [
        await open(mine, 'a:'),
        await open(mine, 'a:'),
        await open(theirs, 'b:'),
        await open(theirs, 'b:'),
      ]
      const heard: string[][] = all.map((hints) => {
        const texts: string[] = []
        hints.on('wanted', (text) => texts.push(text))
        return texts
      })
      all[0]?.publish('wanted', 'ours')
      await until(() => heard[1]?.length === 1)
      all[2]?.publish('wanted', 'theirs')
      await until(() => heard[3]?.length === 1)
      assert.equal(heard, [['ours'], ['ours'], ['theirs'], ['theirs']])
      for (const hints of all) await hints.close()
    })
  }

  redis('limits apply per node when Redis is killed, and over all nodes when it returns', async () => {
    const { proxy, url } = await proxied()
    const { logger, lines } = recorder()
    const [one, other] = [await openPatient(url, logger), await openPatient(url)]
    proxy.refuse()
    assert.is(await takeMany(one, newId(), 10), 3)
    await proxy.heal()
    await until(async () => {
      const key = newId()
      return (await takeMany(one, key, 3)) === 3 && (await takeMany(other, key, 3)) === 0
    })
    assert.is(lines.filter((line) => line.includes(' warn ')).length, 1, lines.join(''))
    assert.is(lines.filter((line) => line.includes(' info ')).length, 1, lines.join(''))
    await one.close()
    await other.close()
    await proxy.close()
  })

  redis('a silent Redis delays a few requests and not those after them', async () => {
    const { proxy, url } = await proxied()
    const limiter = await openRedisRateLimiter(url, silent)
    await limiter.take(newId(), limit)
    proxy.blackhole()
    assert.is(await takeMany(limiter, newId(), 10), 3)
    const key = newId()
    let allowed = 0 // one after the other: with a delay for each, these would outlast the test's timeout
    for (let i = 0; i < 1000; i++) if ((await limiter.take(key, limit)).allowed) allowed++
    assert.is(allowed, 3)
    await limiter.close()
    await proxy.close()
  })

  redis('hints arrive again after Redis was killed, was silent or lost its subscribers', async () => {
    const { proxy, url } = await proxied()
    const [one, other] = [await openRedisHints(url, silent), await openRedisHints(url, silent)]
    const heard = new Set<string>()
    other.on('wanted', (text) => heard.add(text))
    const passes = () =>
      until(
        () => {
          const text = newId()
          one.publish('wanted', text)
          return until(() => heard.has(text), { timeoutMs: 100 })
        },
        { timeoutMs: 15_000 },
      )
    await passes()
    proxy.refuse()
    await until(() => !one.connected && !other.connected)
    one.publish('wanted', 'lost')
    await proxy.heal()
    await passes()
    proxy.blackhole()
    await until(() => !one.connected && !other.connected)
    proxy.reset()
    await proxy.heal()
    await passes()
    const admin = new Redis(url)
    await admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub')
    await passes()
    assert.not.ok(heard.has('lost'))
    admin.disconnect()
    await one.close()
    await other.close()
    await proxy.close()
  })

  redis.run()
}
