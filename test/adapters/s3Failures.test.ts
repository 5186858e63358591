import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import * as assert from 'uvu/assert'
import { openS3Blobs } from '../../src/adapters/s3/index.ts'
import { type ErrorCode, isAppError } from '../../src/errors.ts'
import { type Answer, type Asked, refusalOf, startFakeS3 } from '../support/fakeS3.ts'
import { suite } from '../support/suite.ts'
import { together } from '../support/together.ts'

const failing = suite('a failing S3', { timeoutMs: 40_000 })
const s3 = together(failing)

/** Blobs on a fake S3 that replies by script. */
const openOn = async (script: (asked: Asked, nth: number) => Answer | undefined) => {
  const fake = await startFakeS3(script)
  const blobs = await openS3Blobs(fake.url)
  return {
    fake,
    blobs,
    said: () => fake.asked.slice(1).map(({ what }) => what),
    close: async () => {
      await blobs.close()
      await fake.close()
    },
  }
}

const failureOf = async (work: Promise<unknown>, code: ErrorCode): Promise<string> => {
  const failure = await work.then(
    (value) => new Error(`Expected ${code}, got ${String(value)}`),
    (error: unknown) => error,
  )
  if (!isAppError(failure, code)) throw failure
  return failure.message
}

/** 12 MB: three parts. */
const large = () => Readable.from(Array.from({ length: 12 }, () => Buffer.alloc(1 << 20)))

s3('a failure that may be temporary is retried', async () => {
  const { blobs, said, close } = await openOn(({ what }, nth) => {
    if (what === 'PUT object' && nth < 2) return refusalOf(503, 'SlowDown')
    if (what === 'PUT part 2' && nth < 1) return refusalOf(500, 'InternalError')
    if (what === 'POST complete' && nth < 1) return refusalOf(503, 'ServiceUnavailable')
    if (what === 'HEAD object') return { status: 200, headers: { 'content-length': '12582912', etag: '"e"' } }
    return undefined
  })
  await blobs.put('small', Buffer.from('x'))
  assert.equal(said(), ['PUT object', 'PUT object', 'PUT object'])
  assert.is((await blobs.put('large', large())).size, 12 << 20)
  assert.equal(said().slice(3), [
    'POST create',
    'PUT part 1',
    'PUT part 2',
    'PUT part 2',
    'PUT part 3',
    'POST complete',
    'POST complete',
    'HEAD object',
  ])
  await close()
})

s3('a lasting failure is unavailable after a few attempts, a refusal after one', async () => {
  const { blobs, said, close } = await openOn(({ path, what }) => {
    if (what === 'GET list') return undefined
    return path.includes('busy') ? refusalOf(503, 'SlowDown') : refusalOf(403, 'AccessDenied')
  })
  assert.match(await failureOf(blobs.put('busy', Buffer.from('x')), 'unavailable'), 'SlowDown')
  assert.ok(said().length > 1 && said().length < 10, said().join())
  const before = said().length
  assert.match(await failureOf(blobs.put('denied', Buffer.from('x')), 'unavailable'), 'AccessDenied')
  assert.is(said().length, before + 1)
  await failureOf(blobs.get('denied'), 'unavailable')
  await close()
})

s3('a part that fails ends the upload, and so does a sender that fails', async () => {
  const { blobs, said, close } = await openOn(({ what }) =>
    what === 'PUT part 2' ? refusalOf(403, 'AccessDenied') : undefined,
  )
  await failureOf(blobs.put('large', large()), 'unavailable')
  assert.equal(said(), ['POST create', 'PUT part 1', 'PUT part 2', 'DELETE upload'])
  const torn = Readable.from(
    (async function* () {
      yield Buffer.alloc(7 << 20)
      throw new Error('the sender went away')
    })(),
  )
  await assertRejects(blobs.put('torn', torn), 'the sender went away')
  assert.equal(said().slice(4), ['POST create', 'PUT part 1', 'DELETE upload'])
  await close()
})

/** A request for an object; the list is that of the opening. */
const ofObject = ({ what }: Asked) => what !== 'GET list'

for (const [whose, answer] of [
  ['without a body', { status: 404 }],
  ['of a proxy', { status: 404, body: '<html><body><h1>404 Not Found</h1></body></html>' }],
  ['about the bucket', refusalOf(404, 'NoSuchBucket')],
] as const)
  s3(`a 404 ${whose} says nothing about the blob`, async () => {
    const { blobs, close } = await openOn((asked) => (ofObject(asked) ? answer : undefined))
    const asks = [blobs.get('a'), blobs.get('a', { from: 5 }), blobs.head('a'), blobs.remove('a')]
    await Promise.all(asks.map((ask) => failureOf(ask, 'unavailable')))
    await close()
  })

s3('a blob is missing if the reply names it', async () => {
  const { blobs, said, close } = await openOn(({ what }) => {
    if (what === 'HEAD object') return { status: 404 }
    return what === 'GET object' || what === 'DELETE object' ? refusalOf(404, 'NoSuchKey') : undefined
  })
  await failureOf(blobs.get('a'), 'not_found')
  assert.is(await blobs.head('a'), null)
  await blobs.remove('a')
  assert.equal(said(), ['GET object', 'HEAD object', 'GET object', 'DELETE object'])
  await close()
})

for (const [kind, answer] of [
  ['a', { status: 206, body: 'x' }],
  ['an empty', refusalOf(416, 'InvalidRange')],
] as const)
  s3(`a 404 to HEAD about ${kind} blob that exists says nothing about it`, async () => {
    const { blobs, close } = await openOn(({ what }) => {
      if (what === 'HEAD object') return { status: 404 }
      return what === 'GET object' ? answer : undefined
    })
    await failureOf(blobs.head('a'), 'unavailable')
    await close()
  })

const assertRejects = async (work: Promise<unknown>, message: string): Promise<void> => {
  const failure = await work.catch((error: unknown) => error)
  assert.instance(failure, Error)
  assert.is((failure as Error).message, message)
}

s3('a failure that is reported with status 200 is a failure', async () => {
  const { blobs, said, close } = await openOn(({ what }) =>
    what === 'POST complete' ? refusalOf(200, 'InternalError') : undefined,
  )
  assert.match(await failureOf(blobs.put('large', large()), 'unavailable'), 'InternalError, told & done')
  assert.is(said().at(-1), 'DELETE upload')
  await close()
})

s3('a failure that is reported with status 200 is retried', async () => {
  const { blobs, said, close } = await openOn(({ what }, nth) => {
    if (what === 'POST complete' && nth < 1) return refusalOf(200, 'InternalError')
    if (what === 'HEAD object') return { status: 200, headers: { 'content-length': '12582912', etag: '"e"' } }
    return undefined
  })
  assert.is((await blobs.put('large', large())).size, 12 << 20)
  assert.equal(said().slice(-3), ['POST complete', 'POST complete', 'HEAD object'])
  await close()
})

s3(
  'an upload that S3 completed is complete although the reply was lost, and no other upload is',
  async () => {
    // The parts' etags are the MD5 of nothing; S3 names their blob by the MD5 of the three, and their count.
    const empty = 'd41d8cd98f00b204e9800998ecf8427e'
    let etag = ''
    const { blobs, close } = await openOn(({ what }, nth) => {
      if (what.startsWith('PUT part')) return { status: 200, headers: { etag: `"${empty}"` } }
      if (what === 'POST complete') return nth === 0 ? refusalOf(503, 'Lost') : refusalOf(404, 'NoSuchUpload')
      if (what === 'HEAD object') {
        return { status: 200, headers: { 'content-length': '12582912', etag: `"${etag}"` } }
      }
      return undefined
    })
    const parts = [{ part_number: 1, etag: empty }]
    await failureOf(blobs.completeUpload('a', 'u', parts), 'not_found')
    await blobs.close()
    await close()
    etag = '59adb24ef3cdbe0297f05b395827453f-1' // md5 of the 16 bytes d41d8…27e
    const again = await openOn(({ what }, nth) => {
      if (what === 'POST complete') return nth === 0 ? refusalOf(503, 'Lost') : refusalOf(404, 'NoSuchUpload')
      if (what === 'HEAD object') {
        return { status: 200, headers: { 'content-length': '12', etag: `"${etag}"` } }
      }
      return undefined
    })
    assert.equal(await again.blobs.completeUpload('a', 'u', parts), { key: 'a', size: 12 })
    await again.close()
  },
)

s3('a silent S3 is unavailable in bounded time for every request', async () => {
  const { blobs, close } = await openOn(({ what, path }) => {
    if (path.includes('stopped'))
      return { status: 200, headers: { 'content-length': '1000' }, body: 'no more' }
    return what === 'GET list' ? undefined : null
  })
  const asks = [
    blobs.put('a', Buffer.from('x')),
    blobs.get('a'),
    blobs.get('stopped').then(buffer),
    blobs.head('a'),
    blobs.remove('a'),
    blobs.putPart('a', 'u', 1, Readable.from([Buffer.from('x')]), 1),
    Array.fromAsync(blobs.listUploads()),
  ]
  for (const message of await Promise.all(asks.map((ask) => failureOf(ask, 'unavailable')))) {
    assert.not.match(message, 'topsecret')
  }
  await close()
})

s3('a truncated body is an error of its stream, not an end', async () => {
  const server = createServer((request, response) => {
    if (request.url?.includes('list-type')) return response.end('<ListBucketResult></ListBucketResult>')
    response.writeHead(200, { 'content-length': 1000 })
    response.write('only this', () => response.destroy())
    return undefined
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const blobs = await openS3Blobs(`s3://KEY:SECRET@127.0.0.1:${port}/bucket?tls=false`)
  await failureOf(buffer(await blobs.get('broken')), 'unavailable')
  await blobs.close()
  server.closeAllConnections()
  server.close()
})

const listed = '<Contents><Key>k,</Key><Size>1</Size></Contents>'
for (const [what, body] of [
  ['a failure with status 200', refusalOf(200, 'InternalError').body ?? ''],
  ['cut off', `<ListBucketResult><IsTruncated>true</IsTruncated>${listed}`],
  ['without the mark whether it is complete', `<ListBucketResult>${listed}</ListBucketResult>`],
] as const)
  s3(`a list that is ${what} is a failure, not the end`, async () => {
    const { blobs, close } = await openOn(({ what }, nth) =>
      what === 'GET list' && nth > 0 ? { status: 200, body } : undefined,
    )
    await failureOf(Array.fromAsync(blobs.list('')), 'unavailable')
    await close()
  })

s3('a list of uploads that is a failure with status 200 is a failure, not the end', async () => {
  const { blobs, close } = await openOn(({ what }) =>
    what === 'GET uploads' ? refusalOf(200, 'InternalError') : undefined,
  )
  await failureOf(Array.fromAsync(blobs.listUploads()), 'unavailable')
  await close()
})

s3('a body whose end cannot be recognized is a failure', async () => {
  const server = createServer((request, response) => {
    if (request.url?.includes('list-type')) return response.end('<ListBucketResult></ListBucketResult>')
    response.socket?.end('HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nonly this')
    return undefined
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const blobs = await openS3Blobs(`s3://KEY:SECRET@127.0.0.1:${port}/bucket?tls=false`)
  const read = blobs.get('cut').then(buffer)
  await failureOf(read, 'unavailable')
  await blobs.close()
  server.closeAllConnections()
  server.close()
})

const openings = suite('opening s3')
const opening = together(openings)

opening('an invalid setting is refused with its name and the remedy, without the secret', async () => {
  const mends: Record<string, string> = {
    NoSuchBucket: 'create the bucket',
    InvalidAccessKeyId: 'check key and secret',
    SignatureDoesNotMatch: 'check key and secret',
    AccessDenied: 'list the bucket',
    RequestTimeTooSkewed: 'clock',
    AuthorizationHeaderMalformed: 'region',
  }
  const refuses = async ([code, mend]: [string, string]) => {
    const fake = await startFakeS3(() => refusalOf(code === 'NoSuchBucket' ? 404 : 403, code))
    const message = await failureOf(openS3Blobs(fake.url), 'bad_request')
    assert.match(message, 'SVC_BLOBS')
    assert.match(message, 'bucket bucket at 127.0.0.1')
    assert.match(message, mend)
    assert.not.match(message, /topsecret|KEY/)
    await fake.close()
  }
  await Promise.all(Object.entries(mends).map(refuses))
})

opening('a server that has a web page for every path is refused with the remedy', async () => {
  const body = '<!doctype html><html lang="en"><head><title>Console</title></head></html>'
  for (const answer of [{ status: 200, body }, { status: 200 }]) {
    const fake = await startFakeS3(() => answer)
    const message = await failureOf(openS3Blobs(fake.url), 'bad_request')
    assert.match(
      message,
      /^SVC_BLOBS: bucket bucket at 127.0.0.1:\d+ does not answer as S3: check host and port/,
    )
    await fake.close()
  }
})

opening('an unreachable S3 is unavailable', async () => {
  const fake = await startFakeS3(() => refusalOf(503, 'SlowDown'))
  await failureOf(openS3Blobs(fake.url), 'unavailable')
  await fake.close()
  const message = await failureOf(openS3Blobs(fake.url), 'unavailable')
  assert.match(message, 'ECONNREFUSED')
  assert.not.match(message, 'topsecret')
})

opening('an invalid URL is refused with the setting and without the secret', async () => {
  const bad = [
    's3://',
    's3://host/bucket',
    's3://KEY@host/bucket',
    's3://KEY:topsecret@host',
    's3://KEY:topsecret@host/a',
    's3://KEY:topsecret@host/Bu_cket',
    's3://KEY:topsecret@host/bucket/a//b',
    's3://KEY:topsecret@host/bucket/a%20b',
    's3://KEY:topsecret@host/bucket?tls=maybe',
    's3://KEY:topsecret%ff@host/bucket',
    `s3://KEY:topsecret@host/bucket/${'a'.repeat(101)}`,
  ]
  for (const url of bad) {
    const message = await failureOf(openS3Blobs(url), 'bad_request')
    assert.match(message, 'SVC_BLOBS')
    assert.not.match(message, 'topsecret')
  }
})

failing.run()
openings.run()
