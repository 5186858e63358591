interface Call {
  readonly cancelled: boolean
  write(message: unknown): boolean
  once(event: 'drain' | 'cancelled' | 'close', listener: () => void): unknown
  off(event: 'drain' | 'cancelled' | 'close', listener: () => void): unknown
}

/** Writes a message. Returns a promise if the reader is slower; it resolves when there is room or the call has ended. */
export const send = (call: Call, message: unknown): Promise<void> | undefined =>
  call.write(message) || call.cancelled ? undefined : room(call)

const room = (call: Call): Promise<void> =>
  new Promise((resolve) => {
    const events = ['drain', 'cancelled', 'close'] as const
    const done = () => {
      for (const event of events) call.off(event, done)
      resolve()
    }
    for (const event of events) call.once(event, done)
  })
