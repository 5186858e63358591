import { openAsBlob, statSync } from 'node:fs'
import { basename } from 'node:path'
import { counted } from '../text/counted.ts'
import type { File } from '../client/index.ts'
import { AppError } from '../errors.ts'
import { onOneLine } from '../logger.ts'
import { type CliCommand, command } from './command.ts'
import { bytes } from './figures.ts'
import { writeNewFile } from './newFile.ts'
import type { Column } from './table.ts'
import { take } from './take.ts'
import { received } from './unanswered.ts'
import { DEFAULT_LIMIT, limit, newFile } from './values.ts'

const group = 'files'
const stored = { description: 'the path of the file in the environment' }

const columns: readonly Column<File>[] = [
  { title: 'PATH', of: ({ path }) => path, cut: true },
  { title: 'SIZE', of: ({ size }) => bytes(size), align: 'right' },
  { title: 'TYPE', of: ({ content_type }) => content_type, cut: true },
  { title: 'UPDATED', of: ({ updated_at }) => updated_at },
]

export const fileCommands: readonly CliCommand[] = [
  command({
    group,
    name: 'list',
    summary: 'list the files of the environment',
    description: 'Lists the files of the environment in the order of their paths.',
    ofEnvironment: true,
    arguments: {
      prefix: { description: 'only paths that begin with this text', count: 'optional', mayBeEmpty: true },
    },
    options: { limit },
    examples: ['svc files list', 'svc files list reports/ --limit 100 --json'],
    async run({ args: { prefix }, options: { limit: most = DEFAULT_LIMIT }, client, table, signal }) {
      const filters = { signal, ...(prefix !== undefined && { prefix }) }
      const files = await take(client().files.all(filters), most)
      return { json: files, text: table(files, columns) }
    },
  }),
  command({
    group,
    name: 'put',
    summary: 'upload a file',
    description:
      'Uploads a file, and replaces the one at the same path. A large file is sent in parts, each of which is retried by itself.',
    ofEnvironment: true,
    arguments: {
      file: { description: 'the file to upload' },
      path: { description: 'its path in the environment (default: the name of the file)', count: 'optional' },
    },
    options: {
      type: { value: 'TYPE', description: 'its media type (default: application/octet-stream)' },
    },
    examples: ['svc files put report.csv reports/2026.csv --type text/csv'],
    async run({ args: { file, path: given }, options: { type }, client, progress, signal }) {
      const target = given ?? basename(file)
      const blob = await blobOf(file)
      const bar = progress('bytes')
      const written = await client().files.put(target, blob, {
        signal,
        ...(type !== undefined && { contentType: type }),
        onProgress: (sent) => bar.report(sent, blob.size),
      })
      return { json: written, text: `${onOneLine(`Stored ${written.path}: ${bytes(written.size)}`)}\n` }
    },
  }),
  command({
    group,
    name: 'get',
    summary: 'download a file',
    description: 'Downloads a file into a new file of this folder. It appears when it is complete.',
    ofEnvironment: true,
    arguments: {
      path: stored,
      file: {
        description: 'the file to write; it must not exist (default: the name in the path)',
        count: 'optional',
        parse: newFile,
      },
    },
    examples: ['svc files get reports/2026.csv', 'svc files get reports/2026.csv /tmp/report.csv'],
    async run({ args: { path, file: given }, client, progress, signal, url }) {
      const { content, size, ...found } = await client().files.open(path, { signal })
      const file = given ?? localName(path)
      const bar = progress('bytes')
      await writeNewFile(file, async ({ append }) => {
        let done = 0
        for await (const chunk of received({ url: url(), signal }, content)) {
          await append(chunk)
          bar.report((done += chunk.length), size)
        }
        if (done !== size)
          throw new AppError(
            'unavailable',
            `${onOneLine(path)}: expected ${counted(size, 'byte')}, got ${done}`,
          )
      })
      return {
        json: { ...found, size, file },
        text: `${onOneLine(`${file} contains ${path}: ${bytes(size)}`)}\n`,
      }
    },
  }),
  command({
    group,
    name: 'remove',
    summary: 'delete a file',
    description: 'Deletes a file of the environment.',
    ofEnvironment: true,
    arguments: { path: stored },
    examples: ['svc files remove reports/2026.csv', 'svc files remove reports/2026.csv --yes'],
    confirms: true,
    async run({ args: { path }, client, confirm, signal }) {
      const { files } = client()
      await files.stat(path, { signal })
      await confirm(`Delete ${path}?`)
      await files.delete(path, { signal })
      return { json: { deleted: path }, text: `${onOneLine(`Deleted ${path}`)}\n` }
    },
  }),
]

const blobOf = async (file: string): Promise<Blob> => {
  const found = statSync(file, { throwIfNoEntry: false })
  if (found?.isFile() === true) return openAsBlob(file)
  const problem = found ? 'is not a file' : 'does not exist'
  throw new AppError('bad_request', `file: ${onOneLine(file)} ${problem}`)
}

/** The last part of a stored path, which cannot be another folder. */
const localName = (path: string): string => {
  const name = path.split('/').at(-1) ?? ''
  if (!/[\\/\p{Cc}]/u.test(name) && !['', '.', '..'].includes(name)) return name
  throw new AppError(
    'bad_request',
    `file: required, because ${onOneLine(path)} does not end with the name of a file`,
  )
}
