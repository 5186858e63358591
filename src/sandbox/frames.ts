/** Bytes one frame may hold, its length prefix not counted. More is a violation by whoever sends it. */
export const MAX_FRAME = 8 << 20

/** How deep JSON may nest: more would overflow the stack of whoever stringifies it again. */
export const MAX_DEPTH = 1000

const HEADER = 4

/** The other side broke the protocol; nothing it says after that can be believed. */
export class ProtocolViolation extends Error {
  override name = 'ProtocolViolation'
}

/**
 * Cuts a byte stream into frames: a 4-byte big-endian length, then that many bytes of UTF-8 JSON. Give the
 * returned function each chunk; throws `ProtocolViolation` on a length over `MAX_FRAME`, before buffering it.
 */
export const frameReader = (onFrame: (json: string) => void): ((chunk: Buffer) => void) => {
  let parts: Buffer[] = []
  let have = 0
  let need = HEADER
  return (chunk) => {
    parts.push(chunk)
    have += chunk.length
    if (have < need) return
    const bytes = parts.length === 1 ? chunk : Buffer.concat(parts, have)
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
      onFrame(bytes.toString('utf8', start, at))
    }
    parts = at < bytes.length ? [bytes.subarray(at)] : []
    have = bytes.length - at
  }
}

export interface FrameWriter {
  /** Queues a frame. Throws a RangeError when it is over `MAX_FRAME`. */
  readonly send: (json: string) => void
  /** What is queued, as bytes; null when nothing is. */
  readonly take: () => Buffer | null
}

/** Gathers the frames of one turn of the event loop into a single write. */
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
      if (queue.length === 0) setImmediate(flush)
      queue.push(json)
      sizes.push(size)
      total += HEADER + size
    },
    take,
  }
}

/** Whether JSON text nests at most `MAX_DEPTH` deep. Text too short to nest deeper is not looked at. */
export const isShallow = (json: string): boolean => {
  if (json.length <= MAX_DEPTH) return true
  let depth = 0
  for (let at = 0; at < json.length; at++) {
    const code = json.charCodeAt(at)
    if (code === QUOTE) {
      for (at++; at < json.length && json.charCodeAt(at) !== QUOTE; at++)
        if (json.charCodeAt(at) === BACKSLASH) at++
    } else if (code === OPEN_ARRAY || code === OPEN_OBJECT) {
      if (++depth > MAX_DEPTH) return false
    } else if (code === CLOSE_ARRAY || code === CLOSE_OBJECT) depth--
  }
  return true
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_ARRAY = 0x5b
const CLOSE_ARRAY = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d
