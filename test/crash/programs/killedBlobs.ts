import { readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { openBlobs } from '../../../src/adapters/embedded/blobs.ts'
import { acknowledge } from './acknowledge.ts'

const [, , root = ''] = process.argv
const dir = join(root, 'blobs')
const killed = await openBlobs({ dir })
await killed.put('keys/a', Buffer.from('removed'))
await killed.put('keys/b', Buffer.from('before'))
await killed.put('other/b', Buffer.from('after'))
const upload = await killed.createUpload('whole')

// A process was killed between its last changes and their syncs.
const objects = join(dir, 'objects')
rmSync(join(objects, 'keys~', 'a'))
renameSync(join(objects, 'other~', 'b'), join(objects, 'keys~', 'b'))
for (const name of readdirSync(join(dir, 'uploads')))
  if (name === upload) rmSync(join(dir, 'uploads', name), { recursive: true })

const blobs = await openBlobs({ dir })
acknowledge('opened')
await blobs.close()
