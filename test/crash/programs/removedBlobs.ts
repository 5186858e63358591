import { openBlobs } from '../../../src/adapters/embedded/blobs.ts'
import { isAppError } from '../../../src/errors.ts'
import { acknowledge } from './acknowledge.ts'

const [, , root = ''] = process.argv
const blobs = await openBlobs({ dir: `${root}/blobs` })
const BLOBS = 20

/** Waits until a look finds nothing. The blob is there at the first look. */
const gone = async (look: () => Promise<boolean>): Promise<void> => {
  while (await look());
}

// Another reader looks while a blob is being removed, and relies on what it finds.
for (let n = 0; n < BLOBS; n++) {
  const key = `keys/${n}`
  await blobs.put(key, Buffer.from('a key'))
  const removing = blobs.remove(key)
  await gone(async () => (await Array.fromAsync(blobs.list('keys/'))).length > 0)
  acknowledge(`list:${key}`)
  await removing
}
for (let n = 0; n < BLOBS; n++) {
  const key = `heads/${n}`
  await blobs.put(key, Buffer.from('a key'))
  const removing = blobs.remove(key)
  await gone(async () => (await blobs.head(key)) !== null)
  acknowledge(`head:${key}`)
  await removing
}
for (let n = 0; n < BLOBS; n++) {
  const key = `gets/${n}`
  await blobs.put(key, Buffer.from('a key'))
  const removing = blobs.remove(key)
  await gone(async () => {
    try {
      ;(await blobs.get(key)).destroy()
      return true
    } catch (error) {
      if (!isAppError(error, 'not_found')) throw error
      return false
    }
  })
  acknowledge(`get:${key}`)
  await removing
}
await blobs.close()
