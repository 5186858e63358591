import { once } from 'node:events'
import { type Agent, type ClientRequest, type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { AppError } from '../../errors.ts'

/** A request fails if S3 neither accepts nor sends a byte for this time. The delays of svc itself do not count. */
export const SILENCE_MS = 10_000

export interface Exchange {
  readonly method: string
  readonly headers: Record<string, string | number>
  /** Each iteration yields the whole body again if the request is repeatable. */
  readonly body?: AsyncIterable<Uint8Array> | Iterable<Uint8Array>
  /** `false` opens a new connection. */
  readonly agent: Agent | false
}

/** Sends a request with a streamed body and returns the response unread. Also rejects if the body throws. */
export const exchange = async (
  url: string,
  { method, headers, body, agent }: Exchange,
): Promise<IncomingMessage> => {
  const send = url.startsWith('https:') ? requestHttps : requestHttp
  const request = send(url, { method, headers, agent })
  const answer = answerOf(request)
  let answered = false
  answer.then(
    () => (answered = true),
    () => {}, // awaited below, unless the body fails first
  )
  const silence = new Silence(() => request.destroy(silent()))
  try {
    for await (const chunk of body ?? []) {
      silence.begin()
      if (!request.write(chunk)) await Promise.race([once(request, 'drain'), answer])
      silence.end()
      if (answered) break // S3 refused before the end of the body
    }
    silence.begin()
    if (!answered) request.end()
    return await answer
  } catch (error) {
    request.destroy()
    throw error
  } finally {
    silence.end()
  }
}

/** Yields the bytes of a response. Destroys the response at the end, when the reader stops, and after a silence. */
export async function* bytesOf(response: IncomingMessage): AsyncGenerator<Buffer> {
  const silence = new Silence(() => response.destroy(silent()))
  silence.begin()
  try {
    for await (const chunk of response) {
      silence.end()
      yield chunk as Buffer
      silence.begin()
    }
  } finally {
    silence.end()
    response.destroy()
  }
}

const answerOf = (request: ClientRequest): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    request.once('response', resolve)
    request.on('error', reject)
  })

const silent = () => new AppError('unavailable', `S3 was silent for ${SILENCE_MS / 1000} s`)

class Silence {
  readonly #onTooLong: () => void
  #timer: NodeJS.Timeout | undefined

  constructor(onTooLong: () => void) {
    this.#onTooLong = onTooLong
  }

  begin(): void {
    if (this.#timer) this.#timer.refresh()
    else this.#timer = setTimeout(this.#onTooLong, SILENCE_MS)
  }

  end(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }
}
