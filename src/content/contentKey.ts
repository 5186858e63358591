/** The longest time from the first byte of content to its fact. Older content without a fact is an orphan. */
export const MAX_STORING_MS = 6 * 3600_000

/** The beginning of the keys of an environment's content. */
export const filesOf = (env_id: string): string => `files/${env_id}/`

/**
 * The key of content in the blobs. `version` is a `newId`: it contains the time, and its random end spreads folders.
 */
export const contentKey = (env_id: string, version: string): string =>
  `${filesOf(env_id)}${version.slice(-2)}/${version}`
