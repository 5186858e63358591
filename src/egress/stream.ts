import { connect, type LookupFunction, type Socket } from 'node:net'
import {
  type Address,
  creditFrame,
  DOWNLOAD_WINDOW,
  FRAME,
  frameOf,
  jsonFrame,
  type NetworkError,
  type Opened,
  UPLOAD_WINDOW,
} from './frames.ts'
import { ProtocolViolation } from '../sandbox/frames.ts'
import { EgressError, refusedBy } from './refusal.ts'

/** Time to connect to one of the addresses. */
const CONNECT_MS = 30_000

/** Time after which the next address is tried, too. */
const NEXT_ADDRESS_MS = 250

/** Reads of all streams share this buffer: each copies its bytes before the next read begins. */
const scratch = Buffer.allocUnsafeSlow(64 << 10)

/** The target as user code named it. */
export interface StreamTarget {
  readonly host: string
  readonly port: number
}

export interface StreamListener {
  /** Queues a frame for the child. */
  send(frame: Buffer): void
  /** Whether the stream may read from its target now. */
  readonly mayRead: boolean
  /** Both sides closed the stream: its id and its place are free. */
  onGone(): void
}

/**
 * One connection of user code. S1: the child never has more than `UPLOAD_WINDOW` bytes in it; more is a violation.
 * S2: no byte is read from the target without credit of the child. S3: the stream keeps its place until the socket is
 * closed and both sides sent `close`.
 */
export class EgressStream {
  readonly target: StreamTarget
  readonly #id: number
  readonly #listener: StreamListener
  #socket: Socket | undefined
  #opened = false
  #error: NetworkError | undefined
  /** Bytes that the child may send, and those processed since the last credit. */
  #window = UPLOAD_WINDOW
  #processed = 0
  /** Bytes that the child accepts. */
  #credit = DOWNLOAD_WINDOW
  /** Bytes that wait for the write in progress. */
  #held: Buffer | undefined
  #heldBytes = 0
  #writing = false
  #childEnded = false
  #childClosed = false
  #closed = false
  /** Whether bytes moved since the last look. */
  #moved = true

  constructor(id: number, target: StreamTarget, listener: StreamListener) {
    this.target = target
    this.#id = id
    this.#listener = listener
  }

  /** Dials only these addresses, unless the stream was aborted or given up while they were resolved. */
  dial(addresses: readonly Address[]): void {
    if (this.#childClosed || this.#error) return this.#close()
    const [first] = addresses
    if (!first) return this.fail(refusedBy.connect('ENETUNREACH', '', this.target.port).fields)
    const pinned: LookupFunction = (_name, _options, callback) => callback(null, [...addresses])
    const socket = connect({
      ...(addresses.length === 1 ? { host: first.address } : { host: 'pinned.invalid', lookup: pinned }),
      port: this.target.port,
      allowHalfOpen: true,
      noDelay: true,
      autoSelectFamily: true,
      autoSelectFamilyAttemptTimeout: NEXT_ADDRESS_MS,
      onread: { buffer: scratch, callback: (length) => this.#onRead(length) },
    })
    this.#socket = socket
    socket.setTimeout(CONNECT_MS, () => {
      this.#error ??= refusedBy.connect('ETIMEDOUT', first.address, this.target.port).fields
      socket.destroy()
    })
    socket.on('connect', () => this.#onConnect(socket))
    socket.on('end', () => this.#listener.send(frameOf(FRAME.end, this.#id)))
    socket.on('error', (error) => {
      this.#error ??= this.#errorOf(error, first)
    })
    socket.on('close', () => this.#close())
  }

  fail(error: NetworkError): void {
    this.#error ??= error
    this.#close()
  }

  onData(payload: Buffer): void {
    if (!this.#opened || this.#childEnded || this.#childClosed)
      throw new ProtocolViolation(`Expected no data on stream ${this.#id}, which is not open for sending`)
    if (payload.length === 0 || payload.length > this.#window)
      throw new ProtocolViolation(`Expected 1 to ${this.#window} bytes of data, got ${payload.length}`) // S1
    this.#window -= payload.length
    this.#moved = true
    if (!this.#socket || this.#socket.destroyed) return
    if (this.#writing) this.#hold(payload)
    else this.#write(Buffer.from(payload))
  }

  onEnd(): void {
    if (!this.#opened || this.#childEnded || this.#childClosed)
      throw new ProtocolViolation(`Expected one end of stream ${this.#id} while it is open`)
    this.#childEnded = true
    if (!this.#writing) this.#socket?.end()
  }

  onCredit(bytes: number): void {
    if (bytes === 0 || this.#credit + bytes > DOWNLOAD_WINDOW || this.#childClosed)
      throw new ProtocolViolation(
        `Expected credit within the window of ${DOWNLOAD_WINDOW} bytes, got ${bytes}`,
      )
    this.#credit += bytes
    this.#moved = true
    this.resume()
  }

  onClose(): void {
    if (this.#childClosed) throw new ProtocolViolation(`Expected one close of stream ${this.#id}`)
    this.#childClosed = true
    if (this.#closed) return this.#listener.onGone()
    // The bytes before an end still reach the target; without one the child has given the connection up.
    if (!this.#childEnded) this.#socket?.destroy()
    else if (this.#socket) this.#socket.resume().destroySoon()
  }

  resume(): void {
    if (this.#mayRead) this.#socket?.resume()
  }

  pause(): void {
    if (!this.#childClosed) this.#socket?.pause()
  }

  /** Closes the connection with an error. */
  abort(error: NetworkError): void {
    this.#error ??= error
    this.#socket?.destroy()
  }

  /** Closes the stream if no byte moved since the last call. */
  closeIfIdle(): void {
    if (!this.#moved && this.#opened) this.abort(refusedBy.stream('ETIMEDOUT', 'read').fields)
    this.#moved = false
  }

  /** Closes the connection without a word to the child. */
  destroy(): void {
    this.#childClosed = true
    this.#socket?.destroy()
  }

  get #mayRead(): boolean {
    return this.#opened && this.#credit > 0 && this.#listener.mayRead // S2
  }

  #onConnect(socket: Socket): void {
    socket.setTimeout(0)
    this.#opened = true
    const { remoteAddress = '', localAddress = '', localPort = 0 } = socket
    const opened: Opened = {
      remote: { address: remoteAddress, port: this.target.port },
      local: { address: localAddress, port: localPort },
    }
    this.#listener.send(jsonFrame(FRAME.opened, this.#id, opened))
    if (!this.#mayRead) this.pause()
  }

  /** Returns whether to read on. */
  #onRead(length: number): boolean {
    this.#moved = true
    if (this.#childClosed) return true
    this.#credit -= length
    this.#listener.send(frameOf(FRAME.data, this.#id, scratch.subarray(0, length)))
    return this.#mayRead
  }

  #hold(payload: Buffer): void {
    this.#held ??= Buffer.allocUnsafeSlow(UPLOAD_WINDOW)
    this.#heldBytes += payload.copy(this.#held, this.#heldBytes)
  }

  #write(bytes: Buffer): void {
    this.#writing = true
    this.#socket?.write(bytes, (error) => {
      this.#writing = false
      if (error) return // 'close' follows
      this.#grant(bytes.length)
      const held = this.#held?.subarray(0, this.#heldBytes)
      this.#held = undefined
      this.#heldBytes = 0
      if (held && held.length > 0) this.#write(held)
      else if (this.#childEnded) this.#socket?.end()
    })
  }

  /** Credit is granted in large pieces, so that a flood of small data does not cause one of credit. */
  #grant(bytes: number): void {
    this.#moved = true
    this.#processed += bytes
    if (this.#processed < UPLOAD_WINDOW / 4 || this.#childEnded || this.#childClosed) return
    this.#window += this.#processed
    this.#listener.send(creditFrame(this.#id, this.#processed))
    this.#processed = 0
  }

  #close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#listener.send(
      this.#error ? jsonFrame(FRAME.close, this.#id, this.#error) : frameOf(FRAME.close, this.#id),
    )
    if (this.#childClosed) this.#listener.onGone() // S3
  }

  #errorOf(error: Error, first: Address): NetworkError {
    if (error instanceof EgressError) return error.fields
    const {
      code = 'EIO',
      syscall = 'connect',
      address = first.address,
    } = error as NodeJS.ErrnoException & { address?: string }
    return this.#opened
      ? refusedBy.stream(code, syscall).fields
      : refusedBy.connect(code, address, this.target.port).fields
  }
}
