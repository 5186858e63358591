import { request, type RequestListener } from 'node:http'
import { pipeline } from 'node:stream'

interface Hold {
  /** After so many bytes of the body of a request or of a reply, what sends or receives it remains in progress. */
  readonly after: number
  /** The rest passes when it resolves. */
  readonly until?: Promise<void>
}

const passing = ({ after, until = new Promise(() => {}) }: Hold) =>
  async function* (bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    let left = after
    for await (const chunk of bytes) {
      yield chunk.subarray(0, left)
      left -= chunk.length
      if (left >= 0) continue
      await until
      yield chunk.subarray(left)
      left = Infinity
    }
  }

/** Answers as the service at the URL does, and adds each request such as `GET /v1/env` to the list. */
export const relaying =
  (to: string, asked: string[], hold: Hold = { after: Infinity }): RequestListener =>
  (incoming, response) => {
    const { method, url = '', headers } = incoming
    asked.push(`${method} ${url}`)
    const upstream = request(to + url, { method, headers }, (reply) => {
      response.writeHead(reply.statusCode ?? 0, reply.headers)
      pipeline(reply, passing(hold), response, () => {})
    })
    upstream.on('error', () => response.destroy())
    response.on('close', () => upstream.destroy())
    pipeline(incoming, passing(hold), upstream, () => {})
  }
