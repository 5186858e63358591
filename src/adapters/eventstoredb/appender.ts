import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import shared from '@eventstore/db-client/generated/shared_pb.js'
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js'
import streams from '@eventstore/db-client/generated/streams_pb.js'
import { createUUID, parseUUID } from '@eventstore/db-client/dist/utils/grpcUUID.js'
import type { ClientDuplexStream } from '@grpc/grpc-js'
import timestamp from 'google-protobuf/google/protobuf/timestamp_pb.js'
import { clock } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import { type Cursor, START } from '../../events/event.ts'
import { Histogram, SHORT } from '../../ports/histogram.ts'
import { Backoff } from '../../loops/backoff.ts'
import type { Appended, Expected } from '../../ports/eventStore.ts'
import type { Connection, Generation } from './connection.ts'
import { appErrorOf, isClientWedged, silent } from './failures.ts'
import { closed } from './reader.ts'
import { cursorOf, type Proposed } from './wire.ts'

type Call = ClientDuplexStream<streams.BatchAppendReq, streams.BatchAppendResp>

/** Time limit of one attempt: longer than the 2 s after which the server cancels a write. */
const ATTEMPT_MS = 2500
/** Time limit of all attempts. After it the caller gets an error, and the outcome is unknown. */
const APPEND_MS = 5000
/**
 * The deadline in the request: far in the future, so that clock differences do no harm. The server's own limit is 2 s.
 */
const SERVER_DEADLINE_MS = 10 * 365 * 86_400_000
const PAUSES = { firstMs: 20, longestMs: 500 }

interface Waiting {
  readonly resolve: (reply: streams.BatchAppendResp) => void
  readonly reject: (error: unknown) => void
}

/**
 * Batch append over the generated stubs: one long call carries all appends of this process. The client's own
 * version has no deadline, shares its promises among all clients, and throws outside any promise when a second
 * reply arrives (docs/decisions/0010). Invariants:
 * A1: an append is answered once; a reply without a waiting append is ignored.
 * A2: an unknown outcome is resolved by a repetition with the same ids at the same revision, which the server detects.
 */
export class Appender {
  readonly commits = new Histogram(SHORT)
  readonly #connection: Connection
  readonly #prefix: string
  readonly #waiting = new Map<string, Waiting>()
  #call: { readonly duplex: Call; readonly of: Generation } | undefined
  #opening: { readonly duplex: Promise<Call>; readonly of: Generation } | undefined
  #answeredAt = 0

  constructor(connection: Connection, prefix: string) {
    this.#connection = connection
    this.#prefix = prefix
  }

  async append(stream: string, events: readonly Proposed[], expected: Expected): Promise<Appended> {
    const beganAt = clock.monotonic()
    const until = beganAt + APPEND_MS
    const backoff = new Backoff(PAUSES)
    for (;;) {
      if (this.#connection.closed.aborted) throw closed()
      try {
        const appended = appendedOf(await this.#attempt(stream, events, expected), stream, expected)
        this.commits.observe((clock.monotonic() - beganAt) / 1000)
        return appended
      } catch (error) {
        if (this.#connection.closed.aborted) throw closed()
        const failure = appErrorOf(error)
        if (failure.code === 'wrong_revision' || !failure.retryable) throw failure
        if (isClientWedged(error)) this.#connection.renew()
        const pause = backoff.next()
        if (clock.monotonic() + pause > until) throw failure
        await delay(pause)
      }
    }
  }

  /** Rejects all appends in progress. */
  close(): void {
    this.#drop(closed())
  }

  async #attempt(
    stream: string,
    events: readonly Proposed[],
    expected: Expected,
  ): Promise<streams.BatchAppendResp> {
    const began = clock.monotonic()
    const correlation = randomUUID()
    let timer: NodeJS.Timeout | undefined
    try {
      return await new Promise<streams.BatchAppendResp>((resolve, reject) => {
        timer = setTimeout(() => {
          if (this.#answeredAt < began) this.#connection.renew() // silent for all appends: another node may answer
          reject(new AppError('unavailable', 'The event store did not answer an append in time'))
        }, ATTEMPT_MS)
        this.#waiting.set(correlation, { resolve, reject })
        this.#open().then(
          (duplex) => duplex.write(requestOf(correlation, this.#prefix + stream, events, expected)),
          reject,
        )
      })
    } finally {
      clearTimeout(timer)
      this.#waiting.delete(correlation)
    }
  }

  #open(): Promise<Call> {
    const generation = this.#connection.current
    if (this.#call?.of === generation) return Promise.resolve(this.#call.duplex)
    if (this.#opening?.of === generation) return this.#opening.duplex
    const opening = { duplex: this.#openCall(generation), of: generation }
    this.#opening = opening
    const forget = () => {
      if (this.#opening === opening) this.#opening = undefined
    }
    opening.duplex.then(forget, forget)
    return opening.duplex
  }

  #openCall(generation: Generation): Promise<Call> {
    return new Promise((resolve, reject) => {
      generation.inner
        .execute(streamsGrpc.StreamsClient as never, 'batchAppend', (rpc: streamsGrpc.StreamsClient) => {
          if (generation.gone.aborted) return Promise.reject(silent())
          const duplex = rpc.batchAppend(
            ...generation.inner.callArguments({ requiresLeader: true }, { deadline: Infinity }),
          ) as Call
          this.#call = { duplex, of: generation }
          generation.gone.addEventListener('abort', () => duplex.cancel(), { once: true })
          duplex.on('data', (reply: streams.BatchAppendResp) => this.#answer(reply))
          resolve(duplex)
          return new Promise<never>((_, failed) => {
            duplex.on('error', failed)
            duplex.on('end', () => failed(new AppError('unavailable', 'The event store ended the call')))
          })
        })
        .catch((error: Error) => {
          reject(generation.gone.aborted ? silent() : error) // the failure of a replaced client says nothing of the new one
          if (this.#call?.of === generation || !this.#call) this.#drop(error)
        })
    })
  }

  /** The call has ended: waiting appends are attempted again on a new one (A2). */
  #drop(error: unknown): void {
    this.#call?.duplex.cancel()
    this.#call = undefined
    for (const { reject } of this.#waiting.values()) reject(error)
  }

  #answer(reply: streams.BatchAppendResp): void {
    this.#answeredAt = clock.monotonic()
    this.#connection.heard(this.#answeredAt)
    const id = reply.getCorrelationId()
    if (id) this.#waiting.get(parseUUID(id))?.resolve(reply) // A1
  }
}

const requestOf = (
  correlation: string,
  stream: string,
  events: readonly Proposed[],
  expected: Expected,
): streams.BatchAppendReq => {
  const options = new streams.BatchAppendReq.Options()
  const identifier = new shared.StreamIdentifier()
  identifier.setStreamName(Buffer.from(stream))
  options.setStreamIdentifier(identifier)
  if (expected === 'none') options.setNoStream(new shared.Empty())
  else options.setStreamPosition(String(expected))
  options.setDeadline(timestamp.Timestamp.fromDate(new Date(clock.now() + SERVER_DEADLINE_MS)))
  const request = new streams.BatchAppendReq()
  request.setCorrelationId(createUUID(correlation))
  request.setOptions(options)
  for (const { id, type, data, metadata } of events) {
    const message = new streams.BatchAppendReq.ProposedMessage()
    message.setId(createUUID(id))
    message.getMetadataMap().set('type', type).set('content-type', 'application/json')
    message.setData(data)
    message.setCustomMetadata(metadata)
    request.addProposedMessages(message)
  }
  request.setIsFinal(true)
  return request
}

const appendedOf = (reply: streams.BatchAppendResp, stream: string, expected: Expected): Appended => {
  const success = reply.getSuccess()
  if (success) {
    const position = success.getPosition()
    const cursor: Cursor = position
      ? cursorOf({
          commit: BigInt(position.getCommitPosition()),
          prepare: BigInt(position.getPreparePosition()),
        })
      : START
    return { revision: success.hasNoStream() ? -1 : Number(success.getCurrentRevision()), cursor }
  }
  throw refusalOf(reply, stream, expected)
}

const refusalOf = (reply: streams.BatchAppendResp, stream: string, expected: Expected): AppError => {
  const error = reply.getError()
  const details = error?.getDetails()
  const kind = details?.getTypeName().replace('event_store.client.', '')
  if (kind === 'WrongExpectedVersion') {
    const wrong = shared.WrongExpectedVersion.deserializeBinary(details?.getValue_asU8() ?? new Uint8Array())
    const actual = wrong.hasCurrentStreamRevision() ? Number(wrong.getCurrentStreamRevision()) : 'none'
    return new AppError(
      'wrong_revision',
      `Expected stream ${stream} at revision ${expected}, got ${actual}`,
      {
        data: { stream, expected, actual },
      },
    )
  }
  if (kind === 'MaximumAppendSizeExceeded') {
    return new AppError('payload_too_large', `An append to ${stream} is larger than the event store accepts`)
  }
  if (kind === 'StreamDeleted') {
    return new AppError('not_found', `An operator has ended the stream ${stream} of the event store for ever`)
  }
  if (kind === 'AccessDenied') {
    return new AppError('unavailable', 'The event store refused the user or password of an append')
  }
  return new AppError(
    'unavailable',
    `The event store refused an append: ${kind ?? ''} ${error?.getMessage() ?? ''}`,
  )
}
