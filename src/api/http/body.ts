import type { IncomingMessage } from 'node:http'
import { AppError } from '../../errors.ts'

/** Levels of nesting a JSON body may have: deeper ones would exhaust the stack of whoever walks them. */
const MAX_DEPTH = 64

/** How long a client may take to send a body that is read whole. */
const BODY_TIMEOUT_MS = 15_000

/**
 * Reads a whole body. Rejects with `payload_too_large` as soon as it is known to be over the limit (bytes),
 * with `request_timeout` when it does not arrive in time.
 */
export const readBody = (request: IncomingMessage, limit: number): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const tooLarge = () => new AppError('payload_too_large', `body: expected at most ${limit} bytes`)
    if (Number(request.headers['content-length'] ?? 0) > limit) {
      request.resume()
      return reject(tooLarge())
    }
    const chunks: Buffer[] = []
    let size = 0
    const timer = setTimeout(
      () => reject(new AppError('request_timeout', `body: expected within ${BODY_TIMEOUT_MS / 1000} s`)),
      BODY_TIMEOUT_MS,
    )
    request.on('close', () => clearTimeout(timer))
    request.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size <= limit) chunks.push(chunk)
      else {
        request.removeAllListeners('data')
        request.resume()
        reject(tooLarge())
      }
    })
    request.on('end', () => {
      clearTimeout(timer)
      resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks))
    })
    request.on('error', (error) =>
      reject(new AppError('bad_request', 'body: the connection broke off', { cause: error })),
    )
  })

/** JSON, whatever content type the client named; an empty body is no value. */
export const parseJson = (bytes: Buffer): unknown => {
  if (bytes.length === 0) return undefined
  if (depthOf(bytes) > MAX_DEPTH)
    throw new AppError('bad_request', `body: expected at most ${MAX_DEPTH} levels of nesting`)
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch (error) {
    throw new AppError('bad_request', `body: expected JSON: ${(error as Error).message}`, { cause: error })
  }
}

const [QUOTE, BACKSLASH, OPEN_BRACKET, CLOSE_BRACKET, OPEN_BRACE, CLOSE_BRACE] = Buffer.from('"\\[]{}')

const depthOf = (bytes: Buffer): number => {
  let depth = 0
  let deepest = 0
  let quoted = false
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i]
    if (quoted) {
      if (byte === BACKSLASH) i++
      else if (byte === QUOTE) quoted = false
    } else if (byte === QUOTE) quoted = true
    else if (byte === OPEN_BRACKET || byte === OPEN_BRACE) deepest = Math.max(deepest, ++depth)
    else if (byte === CLOSE_BRACKET || byte === CLOSE_BRACE) depth--
  }
  return deepest
}
