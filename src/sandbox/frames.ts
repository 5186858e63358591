import { ByteChunks } from '../loops/byteChunks.ts'
import { MAX_JSON_DEPTH, nestsDeeperThan } from '../events/jsonDepth.ts'
import { RAW_BYTES } from '../events/rawJson.ts'

/** Bytes of one frame without its length prefix. A sender of a larger frame violates the protocol. */
export const MAX_FRAME = 8 << 20

/** Levels of nesting in a member of a frame, such as the value of a result. The frame itself is one more. */
export const MAX_DEPTH = MAX_JSON_DEPTH

/** Characters of one line of output, of an error message and of a stack: the child cuts, the parent checks. */
export const MAX_LINE = 8 << 10
export const MAX_MESSAGE = 8 << 10
export const MAX_STACK = 16 << 10

/** Characters of JSON of the other details of an error: its name, place, own fields and causes. */
export const MAX_DETAILS = 32 << 10
/** Levels of causes below an error. */
export const MAX_CAUSES = 5
/** Characters of the source line at which an error was thrown, and of the path of its file. */
export const MAX_SNIPPET = 200
export const MAX_FILE = 512

const HEADER = 4

/** In a child, the timers of a run end with it. Frames must be sent nevertheless. */
const nextTurn = setImmediate

/** The other side broke the protocol; nothing that it sends afterwards is trusted. */
export class ProtocolViolation extends Error {
  override name = 'ProtocolViolation'
  /** The id in the frame: only code of that run can send it. */
  frameId?: number
}

/** Adds the id of a frame to the violation that it caused. */
export const blaming = (error: unknown, frameId: unknown): unknown => {
  if (error instanceof ProtocolViolation && typeof frameId === 'number') error.frameId ??= frameId
  return error
}

/**
 * Splits a byte stream into frames: a 4-byte big-endian length, then that many bytes of UTF-8 JSON. The
 * returned function takes each chunk. It throws `ProtocolViolation` on a length over `MAX_FRAME`. `onLarge` receives the
 * bytes of frames that a string would only copy.
 */
export const frameReader = (
  onFrame: (json: string) => void,
  onLarge?: (bytes: Buffer) => void,
): ((chunk: Buffer) => void) => {
  const chunks = new ByteChunks()
  let need = HEADER
  return (chunk) => {
    chunks.add(chunk)
    if (chunks.length < need) return
    const bytes = chunks.take()
    let at = 0
    need = HEADER
    while (bytes.length - at >= HEADER) {
      const length = bytes.readUInt32BE(at)
      if (length > MAX_FRAME) {
        throw new ProtocolViolation(`Expected a frame of at most ${MAX_FRAME} bytes, got ${length}`)
      }
      if (bytes.length - at - HEADER < length) {
        need = HEADER + length
        break
      }
      const start = at + HEADER
      at = start + length
      if (onLarge && length > RAW_BYTES) onLarge(bytes.subarray(start, at))
      else onFrame(bytes.toString('utf8', start, at))
    }
    if (at < bytes.length) chunks.add(bytes.subarray(at))
  }
}

export interface FrameWriter {
  /** Queues a frame. Throws a RangeError when it is over `MAX_FRAME`. */
  readonly send: (json: string) => void
  /** The queued frames as bytes; null when there are none. */
  readonly take: () => Buffer | null
  /** Bytes of the queued frames. */
  readonly queued: () => number
}

/** Sends the frames of one turn of the event loop in a single write. */
export const frameWriter = (write: (bytes: Buffer) => void): FrameWriter => {
  let queue: string[] = []
  let sizes: number[] = []
  let total = 0

  const take = (): Buffer | null => {
    if (queue.length === 0) return null
    const bytes = Buffer.allocUnsafe(total)
    let at = 0
    queue.forEach((json, index) => {
      const size = sizes[index] ?? 0
      at = bytes.writeUInt32BE(size, at)
      at += bytes.write(json, at, size, 'utf8')
    })
    queue = []
    sizes = []
    total = 0
    return bytes
  }

  const flush = () => {
    const bytes = take()
    if (bytes) write(bytes)
  }

  return {
    send: (json) => {
      const size = Buffer.byteLength(json)
      if (size > MAX_FRAME) throw new RangeError(`Expected at most ${MAX_FRAME} bytes of JSON, got ${size}`)
      if (queue.length === 0) nextTurn(flush)
      queue.push(json)
      sizes.push(size)
      total += HEADER + size
    },
    take,
    queued: () => total,
  }
}

export const isShallow = (json: string, levels = MAX_DEPTH): boolean => !nestsDeeperThan(levels, json)

/**
 * The end of the part of a text that begins at `from` and has at most `length` code units. It is between two characters: half
 * of one would be no text (RFC 8259, 8.2), and hide a secret that it belongs to.
 */
export const endOfPart = (text: string, from: number, length: number): number => {
  const end = from + length
  return end < text.length && (text.codePointAt(end - 1) ?? 0) > 0xffff ? end - 1 : end
}
