import type { IncomingMessage } from 'node:http'
import { ByteChunks } from '../../loops/byteChunks.ts'
import { AppError } from '../../errors.ts'
import { nestsDeeperThan } from '../../events/jsonDepth.ts'

/** The default limit of a JSON body in bytes. */
export const DEFAULT_MAX_BODY = 1 << 20

/** Levels of nesting in a JSON body: deeper ones could overflow the stack of recursive code. */
const MAX_DEPTH = 64

/** A client must send a JSON body within this time. */
const BODY_TIMEOUT_MS = 15_000

/**
 * Reads a whole body of at most `limit` bytes. Rejects with `payload_too_large` as soon as the body is known
 * to be larger, and with `request_timeout` when it does not arrive in time.
 */
export const readBody = (request: IncomingMessage, limit: number): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const tooLarge = () => new AppError('payload_too_large', `body: expected at most ${limit} bytes`)
    if (Number(request.headers['content-length'] ?? 0) > limit) {
      request.resume()
      return reject(tooLarge())
    }
    const chunks = new ByteChunks()
    const timer = setTimeout(
      () => reject(new AppError('request_timeout', `body: expected within ${BODY_TIMEOUT_MS / 1000} s`)),
      BODY_TIMEOUT_MS,
    )
    request.on('close', () => clearTimeout(timer))
    request.on('data', (chunk: Buffer) => {
      chunks.add(chunk)
      if (chunks.length <= limit) return
      request.removeAllListeners('data')
      request.resume()
      reject(tooLarge())
    })
    request.on('end', () => {
      clearTimeout(timer)
      resolve(chunks.take())
    })
    request.on('error', (error) =>
      reject(new AppError('bad_request', 'body: the connection was lost', { cause: error })),
    )
  })

/** Parses JSON of any content type. An empty body is `undefined`. */
export const parseJson = (bytes: Buffer): unknown => {
  if (bytes.length === 0) return undefined
  const text = bytes.toString('utf8')
  if (nestsDeeperThan(MAX_DEPTH, text))
    throw new AppError('bad_request', `body: expected at most ${MAX_DEPTH} levels of nesting`)
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new AppError('bad_request', `body: expected JSON: ${(error as Error).message}`, { cause: error })
  }
}
