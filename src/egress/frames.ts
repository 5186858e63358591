/** Kinds of frames between a child and the egress of the service, on fd 4 of the child. */
export const FRAME = {
  /** Child: opens a stream to `{ host, port, family }`. */
  open: 1,
  /** Child: asks for the addresses of `{ host, family }`. */
  lookup: 2,
  /** Service: the stream is connected. JSON `Opened`. */
  opened: 3,
  /** Service: the answer to a lookup. JSON `Found`. */
  found: 4,
  /** Both: bytes of the stream. */
  data: 5,
  /** Both: no more data in this direction. */
  end: 6,
  /** Both: the receiver processed this many bytes (uint32), so the sender may send as many more. */
  credit: 7,
  /** Both, once each and last: the id is free when both sides sent it. The service may add JSON `NetworkError`. */
  close: 8,
} as const

/** Bytes that a child may send on a stream before the service grants more. */
export const UPLOAD_WINDOW = 32 << 10
/** Bytes that the service sends on a stream before the child grants more. It may exceed this by one read. */
export const DOWNLOAD_WINDOW = 256 << 10

/** Concurrent streams and lookups of one child. The child queues more; a child that sends more is ended. */
export const MAX_STREAMS = 256
export const MAX_LOOKUPS = 32

/** Bytes of one frame without its header. */
export const MAX_PAYLOAD = 64 << 10

const HEADER = 9

export interface Address {
  readonly address: string
  readonly family: 4 | 6
}

/** Both ends of a connection. */
export interface Opened {
  readonly remote: { readonly address: string; readonly port: number }
  readonly local: { readonly address: string; readonly port: number }
}

/** The fields of an error as Node has them. */
export interface NetworkError {
  readonly code: string
  readonly message: string
  readonly errno?: number
  readonly syscall?: string
  readonly hostname?: string
  readonly address?: string
  readonly port?: number
}

export type Found = { readonly addresses: readonly Address[] } | { readonly error: NetworkError }

export interface Frame {
  readonly kind: number
  readonly id: number
  readonly payload: Buffer
}

/** A frame is longer than `MAX_PAYLOAD`. */
export class OversizedFrame extends Error {}

const EMPTY = Buffer.alloc(0)

export const frameOf = (kind: number, id: number, payload: Uint8Array = EMPTY): Buffer => {
  const frame = Buffer.allocUnsafe(HEADER + payload.length)
  frame[0] = kind
  frame.writeUInt32BE(id, 1)
  frame.writeUInt32BE(payload.length, 5)
  frame.set(payload, HEADER)
  return frame
}

export const jsonFrame = (kind: number, id: number, value: unknown): Buffer =>
  frameOf(kind, id, Buffer.from(JSON.stringify(value)))

export const creditFrame = (id: number, bytes: number): Buffer => {
  const payload = Buffer.allocUnsafe(4)
  payload.writeUInt32BE(bytes)
  return frameOf(FRAME.credit, id, payload)
}

/** Splits a byte stream into frames. The reader takes them one by one, so that it can pause between two. */
export class FrameReader {
  #bytes: Buffer = EMPTY
  #at = 0

  /** Bytes that were added and not yet taken. */
  get size(): number {
    return this.#bytes.length - this.#at
  }

  add(chunk: Buffer): void {
    this.#bytes = this.size === 0 ? chunk : Buffer.concat([this.#bytes.subarray(this.#at), chunk])
    this.#at = 0
  }

  /** Returns the next complete frame. Throws `OversizedFrame` as soon as its header is known. */
  next(): Frame | undefined {
    const bytes = this.#bytes
    if (this.size < HEADER) return undefined
    const length = bytes.readUInt32BE(this.#at + 5)
    if (length > MAX_PAYLOAD)
      throw new OversizedFrame(`Expected a frame of at most ${MAX_PAYLOAD} bytes, got ${length}`)
    if (this.size < HEADER + length) return undefined
    const start = this.#at + HEADER
    const frame = {
      kind: bytes[this.#at] ?? 0,
      id: bytes.readUInt32BE(this.#at + 1),
      payload: bytes.subarray(start, start + length),
    }
    this.#at = start + length
    return frame
  }
}
