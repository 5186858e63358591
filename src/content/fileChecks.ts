import { AppError } from '../errors.ts'

export const MAX_PATH_BYTES = 1024
const CONTROL = '\\u0000-\\u001f\\u007f-\\u009f'
const HAS_CONTROL = new RegExp(`[${CONTROL}]`)
const SEGMENT = `([^./${CONTROL}]|\\.[^./${CONTROL}]|\\.\\.[^/${CONTROL}])[^/${CONTROL}]*`
/** The rules of `checkedPath` for the OpenAPI document: a pattern without look-ahead, and a length in bytes. */
export const PATH_RULES = { pattern: `^${SEGMENT}(/${SEGMENT})*$`, maxLength: MAX_PATH_BYTES }

/**
 * Returns a valid path: 1 to 1024 bytes, segments between single slashes, none of them `.` or `..`. Throws
 * `bad_request` for any other (SPEC.md, File).
 */
export const checkedPath = (path: unknown): string => {
  const expected = (what: string) => new AppError('bad_request', `path: expected ${what}`)
  if (typeof path !== 'string' || !path.isWellFormed()) throw expected('text')
  const bytes = Buffer.byteLength(path)
  if (bytes === 0 || bytes > MAX_PATH_BYTES) throw expected(`1 to ${MAX_PATH_BYTES} bytes, got ${bytes}`)
  if (HAS_CONTROL.test(path)) throw expected('no control character')
  if (path.split('/').some((segment) => segment === '' || segment === '.' || segment === '..'))
    throw expected('segments between single slashes, none of them "." or "..", and no slash around them')
  return path
}

const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
const MEDIA_TYPE = new RegExp(`^${TOKEN}/${TOKEN}[ \\t]*(;[\\x20-\\x7e\\t]*)?$`)
const MAX_TYPE_LENGTH = 255
/** The rules of `checkedContentType` for the OpenAPI document. */
export const MEDIA_TYPE_RULES = { pattern: MEDIA_TYPE.source, maxLength: MAX_TYPE_LENGTH }
const UNKNOWN_TYPE = 'application/octet-stream'

/** Returns a valid media type, default `application/octet-stream`. Throws `bad_request` for an invalid one. */
export const checkedContentType = (type: unknown): string => {
  if (type === undefined || type === '') return UNKNOWN_TYPE
  if (typeof type === 'string' && type.length <= MAX_TYPE_LENGTH && MEDIA_TYPE.test(type)) return type
  throw new AppError('bad_request', 'content_type: expected a media type, such as text/plain; charset=utf-8')
}
