import { writeSync } from 'node:fs'
import { Socket } from 'node:net'
import { frameReader, frameWriter } from '../frames.ts'
import type { ParentFrame } from '../protocol.ts'

const FD = 3

/** Captured before user code can replace them. */
const { parse, stringify } = JSON

/** The child's end of the pipe to the service. The child exits when the pipe closes. */
export const openChannel = (onFrame: (frame: ParentFrame) => void) => {
  const socket = new Socket({ fd: FD })
  const read = frameReader((json) => onFrame(parse(json) as ParentFrame))
  const writer = frameWriter((bytes) => socket.write(bytes))
  socket.on('data', read)
  socket.on('error', () => process.exit())
  socket.on('close', () => process.exit())

  /** Writes the queued frames before the process ends. It cannot wait for a full pipe. */
  const writeLast = () => {
    const bytes = socket.writableLength === 0 && writer.take()
    if (!bytes) return
    try {
      writeSync(FD, bytes)
    } catch {}
  }

  // User code may call process.exit directly after it logged a line: queued frames are still sent.
  process.on('exit', writeLast)

  return {
    /** Leaves out `undefined` fields. Throws if the frame is too large or cannot be JSON. */
    send: (frame: object) => writer.send(stringify(frame)),
    /** Sends a frame that is already JSON. */
    sendJson: writer.send,
    /** Sends a frame before the process ends. */
    sendLast: (frame: object) => {
      writer.send(stringify(frame))
      writeLast()
    },
    /** Sends the queued frames at once, before code that may block the event loop. */
    flush: () => {
      const bytes = writer.take()
      if (bytes) socket.write(bytes)
    },
  }
}

export type Channel = ReturnType<typeof openChannel>
