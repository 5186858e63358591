import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'

/** A received request by method and kind, such as `PUT part 2` or `POST complete`. */
export interface Asked {
  readonly what: string
  readonly path: string
  readonly bytes: number
}

/** A status and body, or nothing: then the request gets no reply. */
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
 * A small part of S3 that can fail where a real one seldom does. `script` returns a reply, or `undefined` for the reply
 * of a healthy S3. Signatures are not checked, because tests with a real S3 do that.
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

/** The XML of an error of S3. */
export const refusalOf = (status: number, code: string): NonNullable<Answer> => ({
  status,
  body: `<?xml version="1.0"?>\n<Error><Code>${code}</Code><Message>told &amp; done</Message></Error>`,
})
