import { openS3Blobs } from '../../src/adapters/s3/index.ts'
import { newId } from '../../src/ids.ts'
import { blobsContract } from '../contracts/blobs.ts'
import { uploadsContract } from '../contracts/blobUploads.ts'
import { engineUrl } from '../support/engines.ts'

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
}
