import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'

/** What came: the method and what of the query says which request of S3 it is, like `PUT part 2`, `POST complete`. */
export interface Asked {
  readonly what: string
  readonly path: string
  readonly bytes: number
}

/** A status and body, or nothing: the request is never answered. */
export type Answer = { status: number; body?: string; headers?: Record<string, string> } | null

export interface FakeS3 {
  readonly url: string
  readonly asked: Asked[]
  close(): Promise<void>
}

const happy: Readonly<Record<string, Answer>> = {
  'GET list': { status: 200, body: '<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>' },
  'POST create': {
    status: 200,
    body: '<InitiateMultipartUploadResult><UploadId>u1</UploadId></InitiateMultipartUploadResult>',
  },
  'POST complete': {
    status: 200,
    body: '<CompleteMultipartUploadResult><ETag>"e"</ETag></CompleteMultipartUploadResult>',
  },
  'DELETE upload': { status: 204 },
}

/**
 * Speaks just enough of S3 to fail where a real one seldom does. `script` answers what it wants to, `undefined` leaves it
 * to what a healthy S3 says. It checks no signature: that is for the real one.
 */
export const startFakeS3 = async (
  script: (asked: Asked, nth: number) => Answer | undefined,
): Promise<FakeS3> => {
  const asked: Asked[] = []
  const server = createServer(async (request, response) => {
    const bytes = (await buffer(request).catch(() => Buffer.alloc(0))).length
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://s3')
    const one = { what: `${request.method} ${kindOf(request.method, searchParams)}`, path: pathname, bytes }
    const nth = asked.filter(({ what }) => what === one.what).length
    asked.push(one)
    const scripted = script(one, nth)
    const answer =
      scripted === undefined ? (happy[one.what] ?? { status: 200, headers: { etag: '"e"' } }) : scripted
    if (answer) send(response, answer)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `s3://KEY:topsecret@127.0.0.1:${port}/bucket?tls=false`,
    asked,
    close: async () => {
      server.closeAllConnections()
      await once(server.close(), 'close')
    },
  }
}

const send = (response: ServerResponse, { status, body = '', headers = {} }: NonNullable<Answer>): void => {
  response.writeHead(status, { 'content-length': Buffer.byteLength(body), ...headers })
  response.end(body)
}

const kindOf = (method: string | undefined, query: URLSearchParams): string => {
  if (query.has('uploads')) return method === 'POST' ? 'create' : 'uploads'
  if (query.has('partNumber')) return `part ${query.get('partNumber')}`
  if (query.has('uploadId')) return method === 'POST' ? 'complete' : 'upload'
  return query.has('list-type') ? 'list' : 'object'
}

/** An error as S3 tells it. */
export const refusalOf = (status: number, code: string): NonNullable<Answer> => ({
  status,
  body: `<?xml version="1.0"?>\n<Error><Code>${code}</Code><Message>told &amp; done</Message></Error>`,
})
