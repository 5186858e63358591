import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { abortUpload } from '../../../src/commands/files/abortUpload.ts'
import { beginUpload, UPLOAD_EXPIRES_MS } from '../../../src/commands/files/beginUpload.ts'
import { completeUpload } from '../../../src/commands/files/completeUpload.ts'
import { deleteFile } from '../../../src/commands/files/deleteFile.ts'
import { expireUploads } from '../../../src/commands/files/expireUploads.ts'
import { fileAt } from '../../../src/commands/files/fileAt.ts'
import { putPart } from '../../../src/commands/files/putPart.ts'
import { readFile } from '../../../src/commands/files/readFile.ts'
import { storeFile } from '../../../src/commands/files/storeFile.ts'
import { clock } from '../../../src/clock.ts'
import { AppError } from '../../../src/errors.ts'
import { MIN_PART_BYTES } from '../../../src/ports/blobs.ts'
import type { Scenario } from '../subject.ts'
import { Ids, type ModelNode, type World } from '../world.ts'
import { type FilesCommand, LARGE } from './filesSetup.ts'

const largePart = Buffer.alloc(MIN_PART_BYTES, LARGE)
const bytesOf = (content: string): Buffer => (content === LARGE ? largePart : Buffer.from(content))

/** Files and uploads of one environment, through the commands of the service. */
export const openFiles = async (world: World): Promise<Scenario<FilesCommand>> => {
  const { env_id } = await world.openEnv()
  const ids = new Ids()
  const { cause } = ids.caller(env_id, 'files')
  const contentAt = async (node: ModelNode, path: string): Promise<string> => {
    const file = await fileAt(node, env_id, path)
    if (!file) throw new AppError('not_found', 'no such file')
    const content = await text((await readFile(node, file)).chunks)
    if (Buffer.byteLength(content) !== file.size) throw new Error(`Expected ${file.size} bytes at ${path}`)
    return content.replaceAll(String(largePart), LARGE)
  }

  const perform = async (node: ModelNode, command: FilesCommand): Promise<unknown> => {
    switch (command.op) {
      case 'store': {
        const { path, content } = command
        const wanted = { path, content_type: '', run_id: null, rights: null, announced: null }
        await storeFile(node, { ...wanted, content: () => Readable.from([bytesOf(content)]) }, cause)
        return
      }
      case 'read':
        return contentAt(node, command.path)
      case 'delete': {
        const file = await fileAt(node, env_id, command.path)
        if (!file) throw new AppError('not_found', 'no such file')
        return deleteFile(node, file, cause)
      }
      case 'begin': {
        const wanted = { path: command.path, content_type: '', run_id: null }
        await beginUpload(node, wanted, ids.caller(env_id, command.upload))
        return
      }
      case 'part': {
        const { number, content } = command
        const bytes = bytesOf(content)
        const part = { upload_id: idOf(command), part_number: number, size: bytes.length }
        await putPart(node, { ...part, content: Readable.from(bytes.length > 0 ? [bytes] : []) }, cause)
        return
      }
      case 'complete':
        await completeUpload(node, { upload_id: idOf(command), rights: null }, cause)
        return
      case 'abort':
        return abortUpload(node, { upload_id: idOf(command) }, cause)
      case 'expire':
        await expireOwn(node)
        return
      default:
        return command satisfies never
    }
  }
  const idOf = ({ upload }: { upload: string }): string => ids.of(`${upload} upload`)

  /** Ends the uploads of this environment as if their time was over; other scenarios keep theirs. */
  const expireOwn = (node: ModelNode): Promise<number> => {
    const { uploads } = node.views
    const views = {
      settled: () => node.views.settled(),
      uploads: {
        ...uploads,
        find: async (query: Parameters<typeof uploads.find>[0]) => {
          const { items, total } = await uploads.find(query)
          return { items: items.filter((upload) => upload.env_id === env_id), total }
        },
      },
    }
    return expireUploads({ ...node, views }, { now: clock.now() + 2 * UPLOAD_EXPIRES_MS })
  }

  const observe = async (node: ModelNode): Promise<unknown> => {
    const { views } = node
    await views.settled()
    const { items } = await views.files.find({ equal: { env_id }, sort: 'path', limit: 100, offset: 0 })
    const found: Record<string, string> = {}
    let bytes = 0
    for (const { path, size } of items) {
      found[path] = await contentAt(node, path)
      bytes += size
    }
    const total = (await views.fileTotals.get(env_id))?.bytes ?? 0
    if (total !== bytes) throw new Error(`Expected ${bytes} bytes of files, counted ${total}`)
    const parts = { equal: { env_id, kind: 'parts' }, sort: 'holder', limit: 100, offset: 0 } as const
    const held = (await views.holdings.find(parts)).items
    return { files: found, pending: held.map(({ holder }) => ids.nameOf(holder).split(' ')[0]).sort() }
  }

  return { perform, observe }
}
