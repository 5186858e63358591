import { AppError } from '../errors.ts'

/** The rule for keys of context variables, also for the OpenAPI document. */
export const CONTEXT_KEY_PATTERN = '^[A-Za-z_][A-Za-z0-9_.-]{0,127}$'

/** The rule in words, for error messages. */
export const CONTEXT_KEY_RULE = '1 to 128 letters, digits, "_", "." and "-", beginning with a letter or "_"'

const KEY = new RegExp(CONTEXT_KEY_PATTERN)

export const isContextKey = (key: unknown): key is string => typeof key === 'string' && KEY.test(key)

/** Throws `bad_request` for a key that no context variable can have. */
export const checkContextKey = (key: string): void => {
  if (!isContextKey(key)) throw new AppError('bad_request', `key: expected ${CONTEXT_KEY_RULE}`)
}
