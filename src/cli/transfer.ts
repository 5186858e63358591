import { randomBytes } from 'node:crypto'
import {
  closeSync,
  createReadStream,
  existsSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
} from 'node:fs'
import { resolve } from 'node:path'
import { Readable } from 'node:stream'
import { counted } from '../text/counted.ts'
import type { Imported } from '../commands/transfer/importEnv.ts'
import { AppError, messageOf, unreadable } from '../errors.ts'
import { onOneLine } from '../logger.ts'
import type { ApiKey } from './apiKeys.ts'
import { path } from './operator.ts'
import { type CliCommand, command } from './command.ts'
import { writeNewFile } from './newFile.ts'
import { ENV_ARGUMENT, findEnv } from './tenants.ts'
import { received } from './unanswered.ts'

const KEY_FILE = {
  value: 'FILE',
  description: 'the file with the transfer key, which encrypts the secrets in the exported file',
} as const

const KEY_BYTES = 32

/** The last line of a file is its end, with these numbers, or an error. */
const TAIL_BYTES = 4096

/** Reads the transfer key, and creates a random one for an export if the file is missing. */
const transferKeyIn = async (file: string, { isCreated }: { isCreated: boolean }): Promise<string> => {
  if (!existsSync(file)) {
    if (!isCreated)
      throw new AppError(
        'bad_request',
        `--key-file: ${file} does not exist; name the file with the transfer key of the export`,
      )
    await writeNewFile(file, ({ append }) => append(`${randomBytes(KEY_BYTES).toString('base64')}\n`))
  }
  try {
    const key = readFileSync(file, 'utf8').trim()
    if (Buffer.from(key, 'base64').length === KEY_BYTES) return key
  } catch (error) {
    throw new AppError('bad_request', `--key-file: ${unreadable(file, error)}`)
  }
  throw new AppError('bad_request', `--key-file: ${file} contains no transfer key (32 bytes as base64)`)
}

const endOf = (file: string): { readonly facts: number; readonly blobs: number; readonly keys: number } => {
  const fd = openSync(file, 'r')
  try {
    const { size } = statSync(file)
    const tail = Buffer.alloc(Math.min(size, TAIL_BYTES))
    readSync(fd, tail, 0, tail.length, size - tail.length)
    const line = tail.toString('utf8').trimEnd().split('\n').at(-1) ?? ''
    const last = (line.startsWith('{') ? JSON.parse(line) : {}) as {
      end?: ReturnType<typeof endOf>
      error?: string
    }
    if (last.end) return last.end
    throw new AppError('unavailable', last.error ?? 'The service ended the export early; repeat it')
  } catch (error) {
    throw error instanceof SyntaxError
      ? new AppError('unavailable', 'The service ended the export early; repeat it')
      : error
  } finally {
    closeSync(fd)
  }
}

export const transferCommands: readonly CliCommand[] = [
  command({
    name: 'export',
    summary: 'export an environment into a file',
    description:
      'Writes everything of an environment into a file, for svc import on another installation: projects, builds, files, ' +
      'context variables, events and runs. Secrets in it are encrypted, and their keys are encrypted with the transfer ' +
      'key, which is created if its file is missing. Send both by different ways. The environment must be at rest: ' +
      'disable its API keys, and wait until its runs have ended. Credentials, custom domains and uploads in progress ' +
      'are not exported, because they are bound to the installation.',
    arguments: {
      ENV: ENV_ARGUMENT,
      FILE: { description: 'the file to write' },
    },
    options: { 'key-file': KEY_FILE },
    examples: ['svc export acme/prod acme-prod.svc --key-file transfer.key'],
    async run({ args, options, operator, progress, signal }) {
      const [file, keyFile] = [resolve(args.FILE), resolve(options['key-file'] ?? `${args.FILE}.key`)]
      if (keyFile === file) throw new AppError('bad_request', '--key-file: expected another file than FILE')
      if (existsSync(file)) throw new AppError('bad_request', `FILE: ${file} exists; name a new file`)
      const client = operator()
      const { env_id } = await findEnv(client, args.ENV)
      const isKeyNew = !existsSync(keyFile)
      const transfer_key = await transferKeyIn(keyFile, { isCreated: true })
      const bar = progress('bytes')
      try {
        const keys = await Array.fromAsync(client.all<ApiKey>(path`/operator/envs/${env_id}/api-keys`))
        const api_keys = keys.map(({ name }) => name)
        const { body } = await client.open('POST', path`/operator/envs/${env_id}/export`, {
          body: { transfer_key },
        })
        const end = await writeNewFile(file, async ({ part, append }) => {
          let bytes = 0
          for await (const chunk of received({ url: client.url, signal }, body ?? Readable.from([]))) {
            await append(chunk)
            bar.report((bytes += chunk.length), null)
            signal.throwIfAborted()
          }
          return endOf(part)
        })
        return {
          json: { file, key_file: keyFile, env_id, ...end, api_keys },
          text:
            `${file} contains ${counted(end.facts, 'fact')} and ${counted(end.blobs, 'blob')} of ${args.ENV}; its transfer key is in ${keyFile}\n` +
            (api_keys.length > 0 ? `Its API keys are not exported: ${onOneLine(api_keys.join(', '))}\n` : ''),
        }
      } catch (error) {
        if (isKeyNew) rmSync(keyFile, { force: true })
        throw error instanceof AppError || signal.aborted
          ? error
          : new AppError('unavailable', `${file}: ${messageOf(error)}`, { cause: error })
      }
    },
  }),

  command({
    name: 'import',
    summary: 'import an environment from a file',
    description:
      'Imports the environment in a file of svc export, with its ids and times, and creates its organization if it is ' +
      'missing. An environment that exists with other content is refused. An import that was interrupted is continued ' +
      'by repeating it. Create API keys for the environment afterwards.',
    arguments: { FILE: { description: 'the file of svc export' } },
    options: { 'key-file': KEY_FILE },
    examples: ['svc import acme-prod.svc --key-file transfer.key'],
    async run({ args, options, operator, progress, signal }) {
      const file = resolve(args.FILE)
      if (!existsSync(file)) throw new AppError('bad_request', `FILE: ${file} does not exist`)
      const keyFile = resolve(options['key-file'] ?? `${args.FILE}.key`)
      const key = await transferKeyIn(keyFile, { isCreated: false })
      const { size } = statSync(file)
      const bar = progress('bytes')
      let sent = 0
      let failure: AppError | undefined
      const content = async function* () {
        try {
          for await (const chunk of createReadStream(file) as AsyncIterable<Buffer>) {
            bar.report((sent += chunk.length), size)
            yield chunk
          }
        } catch (error) {
          failure = new AppError('bad_request', `FILE: ${unreadable(file, error)}`)
          throw failure
        }
      }
      const imported = await operator()
        .upload<Imported>('/operator/imports', content(), { 'svc-transfer-key': key })
        .catch((error: unknown) => {
          throw failure ?? error // the request fails in the same way as one to a service that does not answer
        })
      signal.throwIfAborted()
      const { facts, blobs, org, env } = imported
      return {
        json: imported,
        text:
          `${org}/${env} contains ${counted(facts, 'fact')} and ${counted(blobs, 'blob')} of the file\n` +
          `Create its API keys with svc keys create ${org}/${env}\n`,
      }
    },
  }),
]
