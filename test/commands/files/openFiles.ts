import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { fileAt } from '../../../src/commands/files/fileAt.ts'
import { readFile } from '../../../src/commands/files/readFile.ts'
import { storeFile } from '../../../src/commands/files/storeFile.ts'
import { newId } from '../../../src/ids.ts'
import { callerOf, openCommands } from '../openCommands.ts'
import { wantedFile } from './wantedFile.ts'

/** The commands of files, for a caller of a new environment. */
export const openFiles = async () => {
  const node = await openCommands()
  const { deps } = node
  const env_id = newId()
  const caller = callerOf(env_id)
  const { cause } = caller
  const contentAt = async (path: string) => {
    const file = await fileAt(deps, env_id, path)
    return file && text((await readFile(deps, file)).chunks)
  }

  const store = (path: unknown, content: string, content_type: unknown = '') =>
    storeFile(
      deps,
      wantedFile(path, () => Readable.from([Buffer.from(content)]), content_type),
      cause,
    )
  return { node, deps, env_id, caller, cause, contentAt, store }
}
