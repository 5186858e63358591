import { text } from 'node:stream/consumers'
import { openBlobs } from '../../../src/adapters/embedded/blobs.ts'
import { acknowledge } from './acknowledge.ts'

const [, , root = ''] = process.argv
const blobs = await openBlobs({ dir: `${root}/blobs` })
const BLOBS = 20

// Another reader looks while a blob is replaced, and relies on what it finds.
for (let n = 0; n < BLOBS; n++) {
  const key = `keys/${n}`
  await blobs.put(key, Buffer.from('before'))
  const replacing = blobs.put(key, Buffer.from('after'))
  while ((await text(await blobs.get(key))) !== 'after');
  acknowledge(`replaced:${key}`)
  await replacing
}
await blobs.close()
