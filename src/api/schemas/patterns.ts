/** A SHA-256 in hex. */
export const HASH_PATTERN = '^[0-9A-Fa-f]{64}$'

/** A key of 32 bytes in base64. */
export const KEY_PATTERN = '^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$'

/** The id of evaluations that share their declarations. */
export const REPL_PATTERN = '^[A-Za-z0-9._-]{1,64}$'
