/** The umask with which the user started the command. */
let umaskOfUser = process.umask()

/** Other users have no access to the files that a command writes from now on, because many contain secrets. */
export const keepFilesPrivate = (): void => {
  umaskOfUser = process.umask(0o077)
}

/** Writes files of a project with the modes that an editor would give them: an image of a container may have another user. */
export const asEditor = <T>(write: () => T): T => {
  const before = process.umask(umaskOfUser)
  try {
    return write()
  } finally {
    process.umask(before)
  }
}
