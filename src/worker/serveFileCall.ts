import { buffer } from 'node:stream/consumers'
import { abortUpload } from '../commands/files/abortUpload.ts'
import { beginUpload } from '../commands/files/beginUpload.ts'
import { completeUpload } from '../commands/files/completeUpload.ts'
import { deleteFile } from '../commands/files/deleteFile.ts'
import type { Caller, CommandDeps } from '../commands/deps.ts'
import { fileAt } from '../commands/files/fileAt.ts'
import { demandWrite } from '../commands/files/demandWrite.ts'
import { putPart } from '../commands/files/putPart.ts'
import { readCurrent } from '../commands/files/readCurrent.ts'
import { readFile } from '../commands/files/readFile.ts'
import { storeFile } from '../commands/files/storeFile.ts'
import { uploadFor } from '../commands/files/uploadFor.ts'
import { checkedPath } from '../content/fileChecks.ts'
import { AppError } from '../errors.ts'
import type { File } from '../events/file.ts'
import type { RunPlan } from '../events/run.ts'
import { MAX_PARTS } from '../ports/blobs.ts'
import type { HostCall } from '../ports/runtime.ts'
import { demandOf, type RunRights } from './runRights.ts'
import { demandRunning } from '../commands/runs/demandRunning.ts'
import { bytesOf, countOf, idOf, prefixOf } from './fileParams.ts'

/** Bytes of content in a reply. The limit is low, because unread replies stay in the memory of this process. */
const MAX_GIVEN_BYTES = 1 << 20

/** Actions that change a file, which a run that has ended must not do. */
const CHANGES: ReadonlySet<FileCall['action']> = new Set(['put', 'begin', 'complete', 'delete'])

type FileCall = Extract<HostCall, { op: 'files' }>

/** Serves a file operation of a running function, on its environment. Content larger than a frame is sent in chunks. */
export const serveFileCall = async (
  deps: Pick<CommandDeps, 'aggregates' | 'blobs' | 'quotas' | 'store' | 'views'>,
  { plan, caller, rights }: { plan: RunPlan; caller: Caller; rights: RunRights },
  { action, params }: FileCall,
): Promise<unknown> => {
  const { cause } = caller
  const { env_id } = cause
  const { run_id } = plan
  if (CHANGES.has(action)) await demandRunning(deps, plan)
  const { path, content_type } = params
  const file = async (needed: 'read' | 'delete'): Promise<File> => {
    const at = checkedPath(path)
    if (rights) await demandOf(rights, 'file', [needed], [at])
    const found = await fileAt(deps, env_id, at)
    if (!found) throw new AppError('not_found', `No file "${at}"`)
    return found
  }
  /** Identifies an upload that this run began. */
  const upload = () => ({ upload_id: idOf(params, 'upload_id'), by_run_id: run_id })
  const now = async () => rights && rights()
  const demandToWrite = async (at: string): Promise<void> =>
    demandWrite(deps, await now(), { env_id, path: at })
  /** Whether the file is created or updated is only known when the upload is complete. */
  const demandUpload = async (): Promise<void> => {
    if (!rights) return
    const known = await uploadFor(deps, env_id, upload())
    await demandOf(rights, 'file', ['create', 'update'], [known.upload.path])
  }

  switch (action) {
    case 'get': {
      return readCurrent(
        () => file('read'),
        async (found) => ({ ...present(found), content_base64: await contentOf(deps, found, 0) }),
      )
    }
    case 'read': {
      return readCurrent(
        () => file('read'),
        async (found) => {
          if (found.etag !== params['etag'])
            throw new AppError('conflict', `File "${found.path}" has changed`)
          return { content_base64: await contentOf(deps, found, countOf(params, 'from', 0, 0, found.size)) }
        },
      )
    }
    case 'put': {
      const bytes = bytesOf(params)
      const content = () => once(bytes)
      const wanted = { path, content_type, run_id, rights: await now(), announced: bytes.length, content }
      return present(await storeFile(deps, wanted, cause))
    }
    case 'begin': {
      const expected_size = countOf(params, 'expected_size', 0, 0, Number.MAX_SAFE_INTEGER)
      await demandToWrite(checkedPath(path))
      const { upload_id } = await beginUpload(deps, { path, content_type, expected_size, run_id }, caller)
      return { upload_id }
    }
    case 'part': {
      const bytes = bytesOf(params)
      const part_number = countOf(params, 'part_number', 1, 1, MAX_PARTS)
      await demandUpload()
      const part = { ...upload(), part_number, size: bytes.length, content: once(bytes) }
      await putPart(deps, part, cause)
      return null
    }
    case 'complete':
      if (rights) await demandToWrite((await uploadFor(deps, env_id, upload())).upload.path)
      return present(await completeUpload(deps, { ...upload(), rights: await now() }, cause))
    case 'abort':
      await demandUpload()
      await abortUpload(deps, upload(), cause)
      return null
    case 'list': {
      if (rights) await demandOf(rights, 'file', ['read'])
      const { views } = deps
      await views.settled('files')
      const { items } = await views.files.find({
        equal: { env_id },
        sort: 'path',
        ...(params['prefix'] !== undefined && { prefix: prefixOf(params) }),
        limit: countOf(params, 'limit', 20, 1, 100),
        offset: countOf(params, 'offset', 0, 0, 1e9),
      })
      return items.map(({ env_id: _, ...doc }) => present(doc))
    }
    case 'delete':
      await deleteFile(deps, await file('delete'), cause)
      return null
    default:
      return action satisfies never
  }
}

const present = ({ key: _, ...file }: File) => file

async function* once(bytes: Buffer): AsyncGenerator<Buffer> {
  yield await Promise.resolve(bytes)
}

const contentOf = async (deps: Pick<CommandDeps, 'blobs'>, file: File, from: number): Promise<string> => {
  const to = Math.min(from + MAX_GIVEN_BYTES, file.size) - 1
  if (to < from) return ''
  const { chunks } = await readFile(deps, file, { from, to })
  return (await buffer(chunks)).toString('base64')
}
