import { S3Client } from '@bradenmacdonald/s3-lite-client'
import { messageOf } from '../../src/errors.ts'
import { until } from '../support/until.ts'

/**
 * Creates the bucket of an `s3://KEY:SECRET@host:port/bucket?region=…&tls=false` if it does not exist. Waits up to 20 s
 * for a server that is still starting.
 */
export const makeBucket = async (url: string): Promise<void> => {
  const { username, password, host, pathname, searchParams } = new URL(url)
  const client = new S3Client({
    endPoint: `${searchParams.get('tls') === 'false' ? 'http' : 'https'}://${host}`,
    accessKey: decodeURIComponent(username),
    secretKey: decodeURIComponent(password),
    region: searchParams.get('region') ?? 'us-east-1',
  })
  const bucket = pathname.split('/')[1] ?? ''
  await until(
    async () => {
      if (!(await client.bucketExists(bucket))) await client.makeBucket(bucket)
      return true
    },
    { timeoutMs: 20_000, everyMs: 200 },
  )
}

if (import.meta.main) {
  try {
    await makeBucket(process.env.SVC_TEST_S3 ?? '')
  } catch (error) {
    const { cause } = error as Error
    process.stderr.write(`Expected to make the bucket of SVC_TEST_S3: ${messageOf(cause ?? error)}\n`)
    process.exitCode = 1
  }
}
