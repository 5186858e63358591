import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'

export interface CollectedSpan {
  readonly traceId: string
  readonly spanId: string
  /** Empty for the first span of a trace. */
  readonly parentSpanId: string
  readonly name: string
  readonly attributes: Readonly<Record<string, unknown>>
  /** 2: an error. */
  readonly status: { readonly code?: number; readonly message?: string }
  readonly startMs: number
  readonly endMs: number
}

export interface Collector {
  readonly url: string
  readonly spans: readonly CollectedSpan[]
  /** The headers of each request so far. */
  readonly requests: readonly IncomingHttpHeaders[]
  close(): Promise<void>
}

interface Attribute {
  readonly key: string
  readonly value: Readonly<Record<string, unknown>>
}

interface SentSpan extends Omit<CollectedSpan, 'attributes' | 'startMs' | 'endMs' | 'parentSpanId'> {
  readonly parentSpanId?: string
  readonly attributes: readonly Attribute[]
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
}

interface Sent {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] }
    readonly scopeSpans: readonly { readonly spans: readonly SentSpan[] }[]
  }[]
}

const valuesOf = (attributes: readonly Attribute[]): Record<string, unknown> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]))

/** A collector of traces: receives OTLP over HTTP as JSON. Spans have the attributes of their resource too. */
export const openCollector = async (status = 200): Promise<Collector> => {
  const spans: CollectedSpan[] = []
  const requests: IncomingHttpHeaders[] = []
  const server = createServer((request, reply) => {
    requests.push(request.headers)
    void json(request).then((body) => {
      if (request.url !== '/v1/traces' || status !== 200) return reply.writeHead(status, {}).end('{}')
      for (const { resource, scopeSpans } of (body as Sent).resourceSpans)
        for (const {
          startTimeUnixNano,
          endTimeUnixNano,
          attributes,
          parentSpanId = '',
          ...span
        } of scopeSpans.flatMap((scope) => scope.spans))
          spans.push({
            ...span,
            parentSpanId,
            attributes: { ...valuesOf(resource.attributes), ...valuesOf(attributes) },
            startMs: Number(startTimeUnixNano) / 1e6,
            endMs: Number(endTimeUnixNano) / 1e6,
          })
      return reply.writeHead(200, { 'content-type': 'application/json' }).end('{}')
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    requests,
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
