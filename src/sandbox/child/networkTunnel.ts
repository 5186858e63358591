import { AsyncLocalStorage } from 'node:async_hooks'
import { Socket } from 'node:net'
import {
  type Address,
  creditFrame,
  DOWNLOAD_WINDOW,
  type Found,
  FRAME,
  type Frame,
  FrameReader,
  frameOf,
  jsonFrame,
  MAX_LOOKUPS,
  MAX_STREAMS,
  type NetworkError,
  type Opened,
  UPLOAD_WINDOW,
} from '../../egress/frames.ts'

/** Captured before user code can replace it. */
const { parse } = JSON

/** Bytes of one data frame. */
const MAX_DATA = 16 << 10

export interface StreamEvents {
  /** Whether no run in progress uses the stream: its data is handled in a turn of the event loop of its own. */
  isAbandoned(): boolean
  onOpened(opened: Opened): void
  /** Returns whether the receiver wants more now; otherwise it calls `consumed` later. */
  onData(data: Buffer): boolean
  onEnd(): void
  /** The service closed the stream: with an error, or because both directions ended. */
  onClose(error: Error | undefined): void
}

/** The child's side of one stream. It sends no more than the service granted. */
export class NetworkStream {
  readonly #tunnel: NetworkTunnel
  readonly #events: StreamEvents
  #id = 0
  #credit = UPLOAD_WINDOW
  /** Bytes that the receiver consumed and that were not granted again yet, and those that wait in it. */
  #consumed = 0
  #waiting = 0
  /** The bytes of a write that are not sent yet, and the size of the whole write. */
  #rest: Buffer | undefined
  #size = 0
  #onSent: ((error?: Error) => void) | undefined
  #closed = false
  /** The remote side closed: nothing that is sent now arrives. */
  #remoteClosed = false
  bytesRead = 0
  bytesWritten = 0

  constructor(tunnel: NetworkTunnel, events: StreamEvents) {
    this.#tunnel = tunnel
    this.#events = events
  }

  open(id: number, request: { host: string; port: number; family: 0 | 4 | 6 }): void {
    this.#id = id
    this.#tunnel.send(jsonFrame(FRAME.open, id, request))
  }

  /** `onSent` is called when all bytes are on their way. */
  write(bytes: Buffer, onSent: (error?: Error) => void): void {
    this.#rest = bytes
    this.#onSent = onSent
    this.#size = bytes.length
    this.flush()
  }

  flush(): void {
    while (this.#rest) {
      if (this.#remoteClosed) return this.#sent(networkError(BROKEN))
      if (this.#rest.length === 0) return this.#sent()
      const size = Math.min(this.#rest.length, this.#credit, MAX_DATA)
      if (size === 0 || this.#tunnel.isFull) return
      this.#tunnel.send(frameOf(FRAME.data, this.#id, this.#rest.subarray(0, size)))
      this.#credit -= size
      this.#rest = this.#rest.subarray(size)
    }
  }

  #sent(error?: Error): void {
    const onSent = this.#onSent
    if (!error) this.bytesWritten += this.#size
    this.#rest = undefined
    this.#onSent = undefined
    onSent?.(error)
  }

  end(): void {
    if (!this.#closed && !this.#remoteClosed) this.#tunnel.send(frameOf(FRAME.end, this.#id))
  }

  /** The receiver consumed everything that waited in it. */
  consumed(): void {
    if (this.#waiting === 0) return
    this.#consumed += this.#waiting
    this.#waiting = 0
    this.#grant()
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#rest = undefined
    this.#onSent = undefined
    this.#tunnel.send(frameOf(FRAME.close, this.#id))
    if (this.#remoteClosed) this.#tunnel.onGone(this.#id)
  }

  get isAbandoned(): boolean {
    return this.#events.isAbandoned()
  }

  onFrame({ kind, payload }: Frame): void {
    if (kind === FRAME.close) return this.onRemoteClose(payload.length > 0 ? jsonOf(payload) : undefined)
    if (this.#closed) return
    switch (kind) {
      case FRAME.opened:
        return this.#events.onOpened(jsonOf(payload))
      case FRAME.data:
        this.bytesRead += payload.length
        if (this.#events.onData(payload)) {
          this.#consumed += payload.length
          this.#grant()
        } else this.#waiting += payload.length
        return
      case FRAME.end:
        return this.#events.onEnd()
      case FRAME.credit:
        this.#credit += payload.readUInt32BE()
        return this.flush()
      default:
    }
  }

  onRemoteClose(error?: NetworkError): void {
    this.#remoteClosed = true
    if (this.#closed) return this.#tunnel.onGone(this.#id)
    this.#events.onClose(error && networkError(error))
    this.flush()
    this.close()
  }

  #grant(): void {
    if (this.#consumed < DOWNLOAD_WINDOW / 4 || this.#closed || this.#remoteClosed) return
    this.#tunnel.send(creditFrame(this.#id, this.#consumed))
    this.#consumed = 0
  }
}

/**
 * The child's side of the pipe to the egress of the service. It is a convenience for user code, not a boundary: the
 * service checks every frame and every target.
 */
export class NetworkTunnel {
  readonly #pipe: Socket
  readonly #reader = new FrameReader()
  readonly #streams = new Map<number, NetworkStream>()
  readonly #lookups = new Map<number, (found: Found) => void>()
  /** Requests that wait until one of the open streams or lookups has ended. */
  readonly #waitingStreams = new Set<() => void>()
  readonly #waitingLookups: (() => void)[] = []
  #lastId = 0
  #closed = false

  constructor(fd: number) {
    this.#pipe = new Socket({ fd, allowHalfOpen: false })
    this.#pipe.on('data', (chunk: Buffer) => {
      this.#reader.add(chunk)
      this.#read()
    })
    this.#pipe.on('drain', () => {
      for (const stream of this.#streams.values()) stream.flush()
    })
    this.#pipe.on('error', () => {})
    this.#pipe.on('close', () => this.#onClose())
    this.#pipe.unref()
  }

  /** Whether a sender should wait for credit or room. */
  get isFull(): boolean {
    return this.#pipe.writableNeedDrain
  }

  send(frame: Buffer): void {
    if (!this.#closed) this.#pipe.write(frame)
  }

  /** Opens a stream, now or when another one has ended. Returns a function that gives it up. */
  open(stream: NetworkStream, request: { host: string; port: number; family: 0 | 4 | 6 }): () => void {
    const start = () => {
      const id = ++this.#lastId
      this.#streams.set(id, stream)
      stream.open(id, request)
    }
    if (this.#closed) process.nextTick(() => stream.onRemoteClose(NO_NETWORK))
    else if (this.#streams.size < MAX_STREAMS) start()
    else {
      this.#waitingStreams.add(start)
      return () => {
        if (!this.#waitingStreams.delete(start)) stream.close()
      }
    }
    return () => stream.close()
  }

  lookUp(
    host: string,
    family: 0 | 4 | 6,
    onFound: (error: Error | null, addresses: readonly Address[]) => void,
  ): void {
    const inContext = AsyncLocalStorage.snapshot()
    const answer = (found: Found) =>
      inContext(() =>
        'error' in found ? onFound(networkError(found.error), []) : onFound(null, found.addresses),
      )
    const start = () => {
      const id = ++this.#lastId
      this.#lookups.set(id, answer)
      this.send(jsonFrame(FRAME.lookup, id, { host, family }))
    }
    if (this.#closed) process.nextTick(answer, { error: NO_NETWORK })
    else if (this.#lookups.size < MAX_LOOKUPS) start()
    else this.#waitingLookups.push(start)
  }

  onGone(id: number): void {
    this.#streams.delete(id)
    for (const start of this.#waitingStreams) {
      if (this.#streams.size >= MAX_STREAMS) return
      this.#waitingStreams.delete(start)
      start()
    }
  }

  #read(): void {
    for (let frame = this.#reader.next(); frame; frame = this.#reader.next()) {
      if (frame.kind === FRAME.data && this.#streams.get(frame.id)?.isAbandoned) return this.#readAlone(frame)
      this.#onFrame(frame)
    }
  }

  /** Handles the frame in a turn of its own, so that its effects are not confused with those of other frames. */
  #readAlone(frame: Frame): void {
    this.#pipe.pause()
    setImmediate(() => {
      this.#onFrame(frame)
      setImmediate(() => {
        this.#pipe.resume()
        this.#read()
      })
    })
  }

  #onFrame(frame: Frame): void {
    const { id } = frame
    if (frame.kind !== FRAME.found) return this.#streams.get(id)?.onFrame(frame)
    const answer = this.#lookups.get(id)
    this.#lookups.delete(id)
    this.#waitingLookups.shift()?.()
    answer?.(jsonOf(frame.payload))
  }

  #onClose(): void {
    this.#closed = true
    for (const start of this.#waitingStreams) start()
    this.#waitingStreams.clear()
    for (const stream of this.#streams.values()) stream.onRemoteClose(NO_NETWORK)
    for (const start of this.#waitingLookups.splice(0)) start()
    for (const answer of this.#lookups.values()) answer({ error: NO_NETWORK })
    this.#lookups.clear()
  }
}

const NO_NETWORK: NetworkError = {
  code: 'ERR_EGRESS_REFUSED',
  message:
    'The connection was refused: there is no network while a build is loaded at its upload; connect when a function runs',
}

const BROKEN: NetworkError = { code: 'EPIPE', syscall: 'write', errno: -32, message: 'write EPIPE' }

export const networkError = ({ message, ...fields }: NetworkError): Error =>
  Object.assign(new Error(message), fields)

const jsonOf = <T>(payload: Buffer): T => parse(payload.toString('utf8')) as T
