import { PathError, ServiceError } from './errors.ts'
import { type Message, messagesOf } from './serverSentEvents.ts'
import { type AnyInput, isInProgress, isTransient, type Send } from './transport.ts'
import { pauseOf, reasonOf, wait } from './wait.ts'

/** Consecutive failures after which a stream is given up: about two minutes. */
const MAX_FAILURES = 16

/** A stream is silent for this long only if its connection is dead: the service sends a comment every 15 s. */
const SILENCE_MS = 45_000

/** The longest time until a reply begins: longer than the attempts of one request, with their pauses. */
const REPLY_MS = 90_000

/** A server-sent event with its data parsed. */
export interface ParsedEvent {
  readonly id: string
  readonly event: string
  readonly data: unknown
}

interface Followed {
  readonly send: Send
  readonly operation: string
  readonly input: AnyInput
  /** Where to begin: an id, `start` or `end`; absent: the default of the operation, or the position of a consumer. */
  readonly from: string | undefined
  readonly onOpen?: (() => void) | undefined
  /** The request that continues after an event, if it is not the same operation with `from`. */
  readonly resume?: (first: ParsedEvent) => { readonly operation: string; readonly input: AnyInput }
}

/**
 * Yields the events of a stream, across connections.
 * F1: the position is that of the last event that was yielded, so no event is lost or repeated.
 * F2: it ends when the service says that the stream is completed; any other end continues at the position.
 * F3: an error that no repetition changes, such as 404, is thrown.
 */
export async function* followEvents(followed: Followed): AsyncGenerator<ParsedEvent, void, undefined> {
  const { send, resume } = followed
  const { signal } = followed.input
  let { operation, input, from } = followed
  let hasBegun = false
  for (let failures = 0; ;) {
    if (signal?.aborted) throw reasonOf(signal)
    const connection = new AbortController()
    failures++ // until an event or a heartbeat arrives: also a reply that ends before them is a failure
    const timer = limitOf(connection, REPLY_MS)
    const stop = (): void => clearTimeout(timer) // the service may not answer to the end of a request either
    signal?.addEventListener('abort', stop)
    try {
      const response = await send(operation, {
        ...input,
        ...(from !== undefined && { query: { ...input.query, from } }), // F1
        headers: { accept: 'text/event-stream', ...input.headers },
        signal: signal ? AbortSignal.any([signal, connection.signal]) : connection.signal,
      })
      stop()
      followed.onOpen?.()
      // Without it, what happens between two connections would be lost to a reader that began at the end.
      if (!resume || hasBegun) from = response.headers.get('stream-position') ?? from
      const received = () => (failures = 0)
      for await (const message of messagesOf(alive(bodyOf(response), connection), received)) {
        const event = parsedOf(message)
        received()
        if (resume && !hasBegun) ({ operation, input } = resume(event))
        hasBegun = true
        if (event.event === 'stream:complete') {
          const { reason, next } = event.data as { readonly reason: string; readonly next: string }
          if (reason === 'completed') return // F2
          if (from !== `end-${next}`) from = next // a quiet stream is not complete for a reader that waits at its end
          continue
        }
        from = event.id
        yield event
      }
    } catch (error) {
      if (signal?.aborted) throw reasonOf(signal)
      if (error instanceof PathError) throw error // F3
      const isRepeated = failures > 1
      if (error instanceof ServiceError && !isTransient(error) && !(isRepeated && isInProgress(error)))
        throw error // F3
      if (failures > MAX_FAILURES) throw error
    } finally {
      signal?.removeEventListener('abort', stop)
      stop()
      connection.abort() // the reader may have left in the middle
    }
    if (failures > MAX_FAILURES) throw unexpected('replies that end before an event or a heartbeat')
    await wait(pauseOf(Math.max(failures, 1), null), signal)
  }
}

const bodyOf = (response: Response): ReadableStream<Uint8Array> => {
  if (response.body) return response.body
  throw unexpected('an empty reply')
}

const unexpected = (got: string): ServiceError =>
  new ServiceError('unexpected_reply', `Expected a stream of events, got ${got}`)

const parsedOf = ({ id, event, data }: Message): ParsedEvent => ({
  id,
  event,
  data: JSON.parse(data) as unknown,
})

const limitOf = (connection: AbortController, ms: number): ReturnType<typeof setTimeout> =>
  setTimeout(() => connection.abort(new Error('The connection is silent')), ms)

/** Ends a connection on which nothing arrives: a machine that was suspended never learns that it is closed. */
async function* alive(
  body: ReadableStream<Uint8Array>,
  connection: AbortController,
): AsyncGenerator<Uint8Array, void, undefined> {
  const reader = body.getReader() // browsers do not all iterate streams
  let timer: ReturnType<typeof setTimeout> | undefined
  try {
    for (;;) {
      timer = limitOf(connection, SILENCE_MS)
      const { done, value } = await reader.read()
      clearTimeout(timer)
      if (done) return
      yield value
    }
  } finally {
    clearTimeout(timer)
    await reader.cancel().catch(() => {}) // it is cut off already
  }
}
