import { AppError } from '../errors.ts'
import type { StoredBlob } from './journal.ts'
import type { ConsumerPosition } from '../ports/storedLog.ts'

/** A segment of the key of a blob; none leads out of a folder. */
const SEGMENT = /^(?!\.{1,2}$)[A-Za-z0-9._-]{1,250}$/
const SHA256 = /^[0-9a-f]{64}$/

/** One line for each blob: key, bytes and SHA-256. */
export const blobsText = (blobs: readonly StoredBlob[]): string =>
  blobs.map(({ key, bytes, sha256 }) => `${JSON.stringify([key, bytes, sha256])}\n`).join('')

export const parseBlobs = (text: string, file: string): StoredBlob[] =>
  text
    .split('\n')
    .slice(0, -1)
    .map((line) => {
      const [key, bytes, sha256] = lineOf(line)
      if (isKey(key) && isCount(bytes) && isSha256(sha256)) return { key, bytes, sha256 }
      throw new AppError(
        'bad_request',
        `${file}: expected lines [key, bytes, sha256], got ${line.slice(0, 80)}`,
      )
    })

/** One line for each consumer group: name and position. */
export const consumersText = (consumers: readonly ConsumerPosition[]): string =>
  consumers.map(({ group, position }) => `${JSON.stringify([group, position])}\n`).join('')

export const parseConsumers = (text: string, file: string): ConsumerPosition[] =>
  text
    .split('\n')
    .slice(0, -1)
    .map((line) => {
      const [group, position] = lineOf(line)
      if (typeof group === 'string' && isCount(position)) return { group, position }
      throw new AppError('bad_request', `${file}: expected lines [name, position], got ${line.slice(0, 80)}`)
    })

const isKey = (value: unknown): value is string =>
  typeof value === 'string' && value.split('/').every((segment) => SEGMENT.test(segment))

const isSha256 = (value: unknown): value is string => typeof value === 'string' && SHA256.test(value)

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0

const lineOf = (line: string): readonly unknown[] => {
  try {
    const value = JSON.parse(line) as unknown
    return Array.isArray(value) ? (value as readonly unknown[]) : []
  } catch {
    return []
  }
}
