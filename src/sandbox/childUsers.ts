import { createServer, type Server } from 'node:net'
import { AppError } from '../errors.ts'

/** A user id that no other living child has. */
export interface ChildUser {
  readonly uid: number
  /** Called when the child has ended. */
  release(): void
}

export interface ChildUsers {
  take(): ChildUser
  close(): void
}

/** The ids of children: `RANGES` ranges of `RANGE_SIZE` from `FIRST_UID` on, one range for each service. */
const FIRST_UID = 20_000
const RANGE_SIZE = 256
const RANGES = 100

/**
 * Takes a range of user ids that no other service of this machine uses. The lock is an abstract socket, which the
 * kernel releases when this process ends.
 */
export const openChildUsers = async (): Promise<ChildUsers> => {
  for (let range = 0; range < RANGES; range++) {
    const lock = await lockOf(`\0svc-child-users-${range}`)
    if (lock) return usersFrom(FIRST_UID + range * RANGE_SIZE, lock)
  }
  throw new AppError(
    'unavailable',
    `All ${RANGES} ranges of user ids for children are in use on this machine`,
  )
}

const usersFrom = (first: number, lock: Server): ChildUsers => {
  const free = Array.from({ length: RANGE_SIZE }, (_, index) => first + index)
  return {
    take: () => {
      const uid = free.shift()
      if (uid === undefined)
        throw new AppError('unavailable', `All ${RANGE_SIZE} users for children are in use`)
      let released = false
      const release = () => {
        if (!released) free.push(uid)
        released = true
      }
      return { uid, release }
    },
    close: () => void lock.close(),
  }
}

const lockOf = (name: string): Promise<Server | null> =>
  new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy()).unref()
    server.once('error', (error: NodeJS.ErrnoException) =>
      error.code === 'EADDRINUSE' ? resolve(null) : reject(error),
    )
    server.listen(name, () => resolve(server))
  })
