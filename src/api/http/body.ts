import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { ByteChunks } from '../../loops/byteChunks.ts'
import { AppError } from '../../errors.ts'
import { tooLargeNumberIn } from '../../events/finiteNumbers.ts'
import { nestsDeeperThan } from '../../events/jsonDepth.ts'
import { withoutBom } from '../../text/withoutBom.ts'

/** The default limit of a JSON body in bytes. */
export const DEFAULT_MAX_BODY = 1 << 20

/** Levels of nesting in a JSON body: deeper ones could overflow the stack of recursive code. */
const MAX_DEPTH = 64

/** Characters of the path of a field in a message. */
const MAX_PATH = 300

/** A client must send a JSON body within this time. */
const BODY_TIMEOUT_MS = 15_000

/** How a large body is read: its rest when `admit` has resolved. */
export interface LargeBody {
  /** Bytes of the largest small body. */
  readonly over: number
  readonly admit: () => Promise<void>
}

/**
 * Reads a whole body of at most `limit` bytes. Rejects with `payload_too_large` as soon as the body is known
 * to be larger, and with `request_timeout` when it does not arrive in time, not counting the time of `admit`.
 */
export const readBody = (request: IncomingMessage, limit: number, large?: LargeBody): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const tooLarge = () => new AppError('payload_too_large', `body: expected at most ${limit} bytes`)
    if (Number(request.headers['content-length'] ?? 0) > limit) {
      request.resume()
      return reject(tooLarge())
    }
    const chunks = new ByteChunks()
    const refuse = (error: Error) => {
      request.removeAllListeners('data')
      request.resume()
      reject(error)
    }
    const late = () =>
      reject(new AppError('request_timeout', `body: expected within ${BODY_TIMEOUT_MS / 1000} s`))
    let timer = setTimeout(late, BODY_TIMEOUT_MS)
    let wanted = large
    request.on('close', () => clearTimeout(timer))
    request.on('data', (chunk: Buffer) => {
      chunks.add(chunk)
      if (chunks.length > limit) return refuse(tooLarge())
      if (!wanted || chunks.length <= wanted.over) return
      request.pause()
      clearTimeout(timer)
      wanted.admit().then(() => {
        if (request.destroyed) return
        timer = setTimeout(late, BODY_TIMEOUT_MS)
        request.resume()
      }, refuse)
      wanted = undefined
    })
    request.on('end', () => {
      clearTimeout(timer)
      resolve(chunks.take())
    })
    request.on('error', (error) =>
      reject(new AppError('bad_request', 'body: the connection was lost', { cause: error })),
    )
  })

/**
 * Parses JSON of any content type. An empty body is `undefined`. A number beyond a double is refused, because it would be
 * stored as `null`, and so are other encodings, because each of their letters could become U+FFFD.
 */
export const parseJson = (bytes: Buffer): unknown => {
  if (bytes.length === 0) return undefined
  if (!isUtf8(bytes)) throw new AppError('bad_request', 'body: expected JSON in UTF-8')
  const text = withoutBom(bytes.toString('utf8')) // some clients send one (RFC 8259, 8.1)
  if (nestsDeeperThan(MAX_DEPTH, text))
    throw new AppError('bad_request', `body: expected at most ${MAX_DEPTH} levels of nesting`)
  const value = parsed(text)
  const tooLarge = tooLargeNumberIn(value, text)
  if (tooLarge !== undefined)
    throw new AppError(
      'bad_request',
      `${tooLarge.slice(0, MAX_PATH) || 'body'}: expected a number of at most ${Number.MAX_VALUE}; send a larger one as text`,
    )
  return value
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new AppError('bad_request', `body: expected JSON: ${(error as Error).message}`, { cause: error })
  }
}
