import { jsonEvent, NO_STREAM } from '@eventstore/db-client'
import type { Connection } from './connection.ts'
import { appErrorOf, isTombstone, isWrongRevision, silent } from './failures.ts'
import type { Reader, StreamMetadata } from './reader.ts'

/** Time for the server to store the metadata of a stream, milliseconds. */
const DEADLINE_MS = 5000

/** Attempts while others change the metadata too, or the server ends reads of it too early. */
const ATTEMPTS = 5

interface Deps {
  readonly connection: Connection
  readonly reader: Pick<Reader, 'metadata'>
}

/** A stream, and its name on the server. */
interface Named {
  readonly stream: string
  readonly name: string
}

/**
 * Sets the age in seconds at which the server drops the events of a stream: `$maxAge` of its metadata. Null: none. Whatever
 * else an operator has set there is kept. Most streams have no metadata, so the first attempt does not read any.
 */
export const setRetention = async (
  { connection, reader }: Deps,
  { stream, name }: Named,
  maxAge: number | null,
): Promise<void> => {
  let known: StreamMetadata | null = null
  try {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      if (known && (isSet(known, maxAge) || isDeleted(known))) return
      const { $maxAge: _, ...others } = known?.fields ?? {}
      const data = { ...others, ...(maxAge !== null && { $maxAge: maxAge }) }
      const expectedRevision = known ? known.revision : NO_STREAM
      try {
        await connection.reply(
          ({ client }) =>
            client.appendToStream(`$$${name}`, jsonEvent({ type: '$metadata', data }), {
              requiresLeader: true,
              expectedRevision,
            }),
          { ms: DEADLINE_MS },
        )
        return
      } catch (error) {
        if (isTombstone(error)) return // it has no events that could expire
        if (!isWrongRevision(error)) throw error
      }
      known = await reader.metadata(stream)
    }
  } catch (error) {
    throw appErrorOf(error)
  }
  throw silent()
}

const isSet = ({ fields }: StreamMetadata, maxAge: number | null): boolean =>
  (fields['$maxAge'] ?? null) === maxAge

/** Whether an operator has deleted the stream. The revision that says so is not exact as a number, so it cannot be kept. */
const isDeleted = ({ fields }: StreamMetadata): boolean => Number(fields['$tb']) > Number.MAX_SAFE_INTEGER
