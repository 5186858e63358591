/** No room, no room for this user, and a file above the limit of its process. */
const FULL = new Set<unknown>(['ENOSPC', 'EDQUOT', 'EFBIG'])
const SQLITE_FULL = 13
/** The index of a WAL in shared memory, `-shm`, cannot grow. SQLite calls it an I/O error. */
const SQLITE_IOERR_SHMSIZE = 10 | (19 << 8)

/** The upper bits of the code of SQLite are details. */
const isFullDatabase = (errcode: number): boolean =>
  (errcode & 0xff) === SQLITE_FULL || errcode === SQLITE_IOERR_SHMSIZE

/** Whether the system or an SQLite database refused to write because there is no room. */
export const isFullDisk = (error: unknown): boolean =>
  error instanceof Error &&
  (('code' in error && FULL.has(error.code)) || ('errcode' in error && isFullDatabase(Number(error.errcode))))

/** The same for an error that has the refusal as its cause. */
export const isOfFullDisk = (error: unknown): boolean =>
  isFullDisk(error) || (error instanceof Error && isFullDisk(error.cause))

/** The end of the message about a file that a command could not write: what to do, as far as that is known. */
export const adviceFor = (error: unknown): string =>
  isOfFullDisk(error) ? '; free some space and repeat the command' : ''
