import { AppError } from '../errors.ts'

/** The rule for keys of context variables, also for the OpenAPI document. */
export const CONTEXT_KEY_PATTERN = '^[A-Za-z_][A-Za-z0-9_.-]{0,127}$'

/** The rule in words, for error messages. */
export const CONTEXT_KEY_RULE = '1 to 128 letters, digits, "_", "." and "-", beginning with a letter or "_"'

/** Maximum bytes of a value, so that the sealed value fits inside a fact. */
export const MAX_VALUE_BYTES = 32 << 10

const KEY = new RegExp(CONTEXT_KEY_PATTERN)

export const isContextKey = (key: unknown): key is string => typeof key === 'string' && KEY.test(key)

/** Throws `bad_request` for a key that no context variable can have. */
export const checkContextKey = (key: string): void => {
  if (!isContextKey(key)) throw new AppError('bad_request', `key: expected ${CONTEXT_KEY_RULE}`)
}

/** Throws `forbidden` for a key that the function `ref` does not declare. Without a declaration it may read every key. */
export const demandDeclared = (declared: readonly string[] | undefined, key: string, ref: string): void => {
  if (declared === undefined || declared.includes(key)) return
  const wanted = [...declared, key].map((each) => `'${each}'`).join(', ')
  throw new AppError(
    'forbidden',
    `context("${key}"): ${ref} declares that it does not read this variable; to allow it, deploy it with \`context: [${wanted}]\` in its metadata`,
  )
}

export const noVariable = (key: string): AppError => new AppError('not_found', `No context variable "${key}"`)
