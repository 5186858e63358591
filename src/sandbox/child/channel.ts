import { writeSync } from 'node:fs'
import { Socket } from 'node:net'
import { frameReader, frameWriter } from '../frames.ts'
import type { ParentFrame } from '../protocol.ts'

const FD = 3

/** Taken before user code could replace them. */
const { parse, stringify } = JSON

/** The child's end of the pipe to the service. When the service is gone the child ends. */
export const openChannel = (onFrame: (frame: ParentFrame) => void) => {
  const socket = new Socket({ fd: FD })
  const read = frameReader((json) => onFrame(parse(json) as ParentFrame))
  const writer = frameWriter((bytes) => socket.write(bytes))
  socket.on('data', read)
  socket.on('error', () => process.exit())
  socket.on('close', () => process.exit())

  // User code may call process.exit right after it logged something: what was said before still goes out.
  process.on('exit', () => {
    const bytes = socket.writableLength === 0 && writer.take()
    if (!bytes) return
    try {
      writeSync(FD, bytes)
    } catch {}
  })

  return {
    /** `undefined` fields are left out. Throws when it holds what JSON cannot, or is too large. */
    send: (frame: object) => writer.send(stringify(frame)),
    /** A frame that is JSON already. */
    sendJson: writer.send,
    /** Sends what was said so far now, before code that may never give the event loop another turn. */
    flush: () => {
      const bytes = writer.take()
      if (bytes) socket.write(bytes)
    },
  }
}

export type Channel = ReturnType<typeof openChannel>
