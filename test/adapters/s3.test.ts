import { Readable } from 'node:stream'
import * as assert from 'uvu/assert'
import { openS3Blobs } from '../../src/adapters/s3/index.ts'
import { isAppError } from '../../src/errors.ts'
import { newId } from '../../src/ids.ts'
import type { PendingUpload } from '../../src/ports/blobs.ts'
import { blobsContract } from '../contracts/blobs.ts'
import { uploadsContract } from '../contracts/blobUploads.ts'
import { engineUrl } from '../support/engines.ts'
import { startFakeS3 } from '../support/fakeS3.ts'
import { openFaultProxy } from '../support/faultProxy.ts'
import { suite } from '../support/suite.ts'
import { until } from '../support/until.ts'

const names = suite('names in a bucket')

names('are the prefix of the URL, the key and a last character that no key contains', async () => {
  const listed = ['pre/fix/a,', 'pre/fix/a/b,', 'pre/fix/not-ours'].map(
    (name) => `<Contents><Key>${name}</Key><Size>3</Size></Contents>`,
  )
  const fake = await startFakeS3(({ what }) =>
    what === 'GET list'
      ? {
          status: 200,
          body: `<ListBucketResult><IsTruncated>false</IsTruncated>${listed.join('')}</ListBucketResult>`,
        }
      : undefined,
  )
  const blobs = await openS3Blobs(fake.url.replace('/bucket', '/bucket/pre/fix'))
  await blobs.put('a/b', Buffer.from('x'))
  assert.is(decodeURIComponent(fake.asked.at(-1)?.path ?? ''), '/bucket/pre/fix/a/b,')
  assert.equal(await Array.fromAsync(blobs.list('a')), [
    { key: 'a', size: 3 },
    { key: 'a/b', size: 3 },
  ])
  await blobs.close()
  await fake.close()
})

names.run()

const url = engineUrl('s3')
if (url === null) process.stdout.write('S3 was not exercised: SVC_TEST_S3 names none\n')
else {
  const under = (original: string): string => {
    const named = new URL(original)
    named.pathname = `${named.pathname.replace(/\/$/, '')}/t${newId()}`
    return named.href
  }
  blobsContract('S3', async () => {
    const blobs = await openS3Blobs(under(url))
    return { blobs, close: () => blobs.close() }
  })

  uploadsContract('S3', async () => {
    const own = under(url)
    const blobs = await openS3Blobs(own)
    return { blobs, reopen: () => openS3Blobs(own), close: () => blobs.close() }
  })

  const bucket = suite('a bucket')

  bucket(
    'a wrong secret, key or bucket is refused at open with the remedy and without the secret',
    async () => {
      const wrong = (change: (named: URL) => void): string => {
        const named = new URL(url)
        change(named)
        return named.href
      }
      const mends = [
        [wrong((named) => (named.password = 'topsecret')), 'check key and secret'],
        [wrong((named) => (named.username = 'nobody')), 'check key and secret'],
        [wrong((named) => (named.pathname = '/svc-test-none-such')), 'create the bucket'],
      ]
      for (const [bad = '', mend = ''] of mends) {
        const failure = await openS3Blobs(bad).catch((error: unknown) => error)
        assert.ok(isAppError(failure, 'bad_request'))
        assert.match(failure.message, 'SVC_BLOBS')
        assert.match(failure.message, mend)
        assert.not.match(failure.message, 'topsecret')
      }
    },
  )

  bucket('a put that failed leaves no parts behind', async () => {
    const blobs = await openS3Blobs(under(url))
    let during: PendingUpload[] = []
    const torn = async function* () {
      yield Buffer.alloc(7 << 20)
      during = await until(async () => {
        const listed = await Array.fromAsync(blobs.listUploads())
        return listed.length > 0 ? listed : null
      })
      throw new Error('the sender went away')
    }
    await blobs.put('torn', Readable.from(torn())).catch(() => {})
    assert.equal(
      during.map(({ key }) => key),
      ['torn'],
    )
    assert.equal(await Array.fromAsync(blobs.listUploads()), [])
    await blobs.close()
  })

  bucket('blobs are available again as soon as S3 is, without reopening', async () => {
    const { hostname, port, searchParams } = new URL(url)
    const tls = searchParams.get('tls') !== 'false'
    const proxy = await openFaultProxy({ host: hostname, port: Number(port || (tls ? 443 : 80)) })
    const blobs = await openS3Blobs(under(proxy.url(url)))
    await blobs.put('a', Buffer.from('kept'))
    proxy.refuse()
    const failure = await blobs.head('a').catch((error: unknown) => error)
    assert.ok(isAppError(failure, 'unavailable'))
    await proxy.heal()
    assert.is((await blobs.head('a'))?.size, 4)
    await blobs.close()
    await proxy.close()
  })

  bucket.run()
}
