import { request, type RequestListener } from 'node:http'

/** Answers as the service at the URL does, and adds each request such as `GET /v1/env` to the list. */
export const relaying =
  (to: string, asked: string[]): RequestListener =>
  (incoming, response) => {
    const { method, url = '', headers } = incoming
    asked.push(`${method} ${url}`)
    const upstream = request(to + url, { method, headers }, (reply) => {
      response.writeHead(reply.statusCode ?? 0, reply.headers)
      reply.pipe(response)
    })
    upstream.on('error', () => response.destroy())
    response.on('close', () => upstream.destroy())
    incoming.pipe(upstream)
  }
