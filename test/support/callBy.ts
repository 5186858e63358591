import { type IncomingHttpHeaders, request } from 'node:http'
import type { TestServer } from './server.ts'

interface Reply {
  readonly status: number
  readonly text: string
  readonly headers: IncomingHttpHeaders
}

/** Sends a request with a host name, as a proxy does. */
export const callBy = (
  { url }: Pick<TestServer, 'url'>,
  host: string,
  path: string,
  method: string,
): Promise<Reply> =>
  new Promise((resolve, reject) => {
    const sent = request(`${url}${path}`, { method, headers: { Host: host } }, (reply) => {
      let text = ''
      reply.on('data', (chunk) => (text += String(chunk)))
      reply.on('end', () => resolve({ status: reply.statusCode ?? 0, text, headers: reply.headers }))
    })
    sent.on('error', reject).end()
  })
