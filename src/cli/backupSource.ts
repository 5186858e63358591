import { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { framesIn, type RowFrame } from '../backup/rowFrames.ts'
import type { BackupSource, BackupStart, ListedBlob } from '../backup/source.ts'
import { AppError, isAppError, messageOf } from '../errors.ts'
import { type Operator, path } from './operator.ts'
import { received } from './unanswered.ts'

/** Attempts to continue an interrupted read without any new byte, and the time before each. */
const ATTEMPTS = 5
const RETRY_MS = 1000

/** A running service as the source of a backup. A read that the network interrupts is continued where it ended. */
export const openBackupSource = (client: Operator, signal: AbortSignal): BackupSource => {
  const of = (backup_id: string) => path`/operator/backups/${backup_id}`

  const bytes = async (
    target: string,
    query: Readonly<Record<string, number>>,
  ): Promise<AsyncIterable<Uint8Array>> => {
    const { body } = await named(client.open('GET', target, { query }))
    return body ?? Readable.from([])
  }

  return {
    begin: () => client.request<BackupStart>('POST', '/operator/backups'),

    async *rows(backup_id, after) {
      let at = after
      yield* continued(signal, async function* (): AsyncGenerator<RowFrame> {
        for await (const row of framesIn(await bytes(`${of(backup_id)}/log`, { after: at }))) {
          at = row.first + row.count - 1
          yield row
        }
      })
    },

    async *blobs(backup_id) {
      let text = ''
      const decoder = new TextDecoder()
      const listed = await bytes(`${of(backup_id)}/blobs`, {})
      for await (const chunk of received({ url: client.url, signal }, listed)) {
        const lines = (text + decoder.decode(chunk, { stream: true })).split('\n')
        text = lines.pop() ?? ''
        for (const line of lines) yield blobOf(line)
      }
      if (text !== '')
        throw new AppError('unavailable', 'The service sent an incomplete list of blobs; repeat the backup')
    },

    async *blob(backup_id, key, from) {
      let at = from
      yield* continued(signal, async function* (): AsyncGenerator<Uint8Array> {
        for await (const chunk of await bytes(`${of(backup_id)}/blobs/${key}`, { from: at })) {
          at += chunk.length
          yield chunk
        }
      })
    },

    async complete(backup_id) {
      await named(client.request('POST', `${of(backup_id)}/complete`))
    },

    async end(backup_id) {
      await client.request('DELETE', of(backup_id)).catch(() => {}) // it ends by itself
    },
  }
}

/** Names the refusals that a backup reacts to. */
const named = <T>(reply: Promise<T>): Promise<T> =>
  reply.catch((error: unknown) => {
    if (!isAppError(error)) throw error
    const { status } = error.data
    if (status === 404) throw new AppError('not_found', error.message, { cause: error })
    if (status === 409) throw new AppError('conflict', error.message, { cause: error })
    throw error
  })

/** Repeats a read that breaks, from where it was. An error that the service replies with is final. */
async function* continued<T>(signal: AbortSignal, read: () => AsyncGenerator<T>): AsyncGenerator<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      for await (const part of read()) {
        attempt = 0
        yield part
      }
      return
    } catch (error) {
      if (signal.aborted || !isBroken(error)) throw error
      if (attempt >= ATTEMPTS)
        throw new AppError(
          'unavailable',
          `The connection broke (${detailOf(error)}); repeat the backup: it continues`,
          { cause: error },
        )
      await delay(RETRY_MS, undefined, { signal })
    }
  }
}

/** Whether a reply ended early, or none arrived: fetch reports both as a `TypeError`, which `unanswered` has as its cause. */
const isBroken = (error: unknown): boolean =>
  error instanceof TypeError || (isAppError(error, 'unavailable') && error.cause instanceof TypeError)

const detailOf = (error: unknown): string =>
  isAppError(error) ? String(error.data['detail'] ?? error.message) : messageOf(error)

const blobOf = (line: string): ListedBlob => {
  const [key, size] = JSON.parse(line) as [string, number]
  return { key, size }
}
