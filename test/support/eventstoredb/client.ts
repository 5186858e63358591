import { EventStoreDBClient, jsonEvent } from '@eventstore/db-client'

/** The real client, connected to the stand-in. */
export const clientOf = (url: string): EventStoreDBClient => EventStoreDBClient.connectionString(url)

/** An event with this data. */
export const event = (data: number, id?: string) =>
  jsonEvent({ type: 'Happened', data: { data }, ...(id ? { id } : {}) })

/** The data of the events of a stream; empty when there is none. */
export const read = async (client: EventStoreDBClient, stream: string): Promise<number[]> => {
  const found: number[] = []
  try {
    for await (const { event: one } of client.readStream(stream)) found.push(dataOf(one))
  } catch (error) {
    if ((error as { type?: string }).type !== 'stream-not-found') throw error
  }
  return found
}

export const dataOf = (recorded: { readonly data: unknown } | undefined): number =>
  (recorded?.data as { data: number } | undefined)?.data ?? NaN

/** Resolves with the error that the promise rejects with. */
export const failureOf = async (
  promise: Promise<unknown>,
): Promise<{ type?: string; code?: number; message?: string }> => {
  try {
    await promise
  } catch (error) {
    return error as Error
  }
  throw new Error('Expected a rejection')
}
