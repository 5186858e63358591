import * as http from 'node:http'
import * as https from 'node:https'
import { type Context, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { resourceFromAttributes } from '@opentelemetry/resources'
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  type ReadableSpan,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import type { Logger } from '../../logger.ts'
import { atMost } from '../../loops/deadline.ts'
import { throttled } from '../../loops/throttled.ts'
import type { SpanStart, Tracer } from '../../ports/tracer.ts'

/** Ended spans that wait for the collector; later ones are dropped. A span takes about 2 KB. */
const MAX_QUEUED = 4096
const BATCH = 512
/** Spans wait this long for further ones, milliseconds. */
const LINGER_MS = 1000
/** Time to send a batch with all repetitions, milliseconds. */
const SEND_MS = 5000
/** Time for the last spans when the node stops, milliseconds. */
const CLOSE_MS = 2000

/** `ExportResultCode.FAILED` of the library. */
const FAILED = 1

const KINDS = { server: SpanKind.SERVER, producer: SpanKind.PRODUCER, consumer: SpanKind.CONSUMER } as const

export interface OtlpOptions {
  /** The URL of the collector, without `/v1/traces`. */
  readonly endpoint: string
  readonly headers: Readonly<Record<string, string>>
  readonly serviceName: string
  /** The share of the traces that begin here and are recorded, 0 to 1. Others are recorded as their callers decide. */
  readonly ratio: number
  readonly version: string
  /** Default: `SEND_MS`. */
  readonly sendMs?: number
}

type OpenTracer = Tracer & { close(): Promise<void> }

/** Sends spans to an OpenTelemetry collector by OTLP over HTTP, as JSON. */
export const openOtlpTracer = (
  { endpoint, headers, serviceName, ratio, version, sendMs = SEND_MS }: OtlpOptions,
  logger: Logger,
): OpenTracer => {
  const connections = openConnections()
  const exporter = new OTLPTraceExporter({
    url: `${endpoint}/v1/traces`,
    headers: { ...headers },
    timeoutMillis: sendMs, // of silence: a collector that sends a byte now and then would not reach it
    httpAgentOptions: connections.agentFor,
  })
  const closing = new AbortController()
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ 'service.name': serviceName, 'service.version': version }),
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(ratio) }),
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: reporting(exporter, { logger, closing: closing.signal, sendMs, cut: connections.cut }),
        maxQueueSize: MAX_QUEUED,
        maxExportBatchSize: BATCH,
        scheduledDelayMillis: LINGER_MS,
        exportTimeoutMillis: 2 * sendMs, // the exporter ends earlier
      }),
    ],
  })
  const tracer = provider.getTracer('svc', version)
  return {
    begin(name, { kind, parent, attributes = {} }) {
      const span = tracer.startSpan(name, { kind: KINDS[kind], attributes }, contextOf(parent))
      const { traceId, spanId, traceFlags } = span.spanContext()
      return {
        traceparent: `00-${traceId}-${spanId}-0${traceFlags & 1}`,
        end({ name: renamed, attributes: more, error } = {}) {
          if (renamed !== undefined) span.updateName(renamed)
          if (more) span.setAttributes(more)
          if (error !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: error })
          span.end()
        },
      }
    },
    close: async () => {
      closing.abort()
      await atMost(
        CLOSE_MS,
        provider.shutdown().catch(() => {}), // the exporter has logged why
      )
      connections.cut()
    },
  }
}

/** The connections to the collector, which can be cut. Later requests open new ones. */
const openConnections = () => {
  const agents: http.Agent[] = []
  return {
    agentFor: (protocol: string): http.Agent => {
      const agent = new (protocol === 'https:' ? https : http).Agent({ keepAlive: true })
      agents.push(agent)
      return agent
    },
    cut: (): void => {
      for (const agent of agents) agent.destroy()
    },
  }
}

const contextOf = (parent: SpanStart['parent']): Context => {
  if (parent === undefined) return ROOT_CONTEXT
  const [, traceId = '', spanId = '', flags = ''] = parent.split('-')
  const context = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true }
  return trace.setSpanContext(ROOT_CONTEXT, context)
}

interface Reporting {
  readonly logger: Logger
  readonly closing: AbortSignal
  readonly sendMs: number
  /** Ends requests in progress. */
  readonly cut: () => void
}

/**
 * Logs that spans were lost: the library reports it to nobody. Ends a request whose reply does not end in time, because it
 * would hold its spans and its place for ever. A node that stops does not wait for a lost collector.
 */
const reporting = (exporter: SpanExporter, { logger, closing, sendMs, cut }: Reporting): SpanExporter => {
  const warn = throttled(logger)
  let isLost = false
  return {
    export: (spans: ReadableSpan[], done) => {
      if (closing.aborted && isLost) return done({ code: FAILED })
      let isLate = false
      const deadline = setTimeout(() => {
        isLate = true
        cut()
      }, sendMs)
      exporter.export(spans, (result) => {
        clearTimeout(deadline)
        isLost = isLate || result.code === FAILED
        if (isLate)
          warn(`The collector of traces did not end its reply within ${sendMs} ms, so spans may be lost`, {
            spans: spans.length,
          })
        else if (result.error)
          warn('Spans could not be sent to the collector of traces and were dropped', {
            spans: spans.length,
            error: result.error.message,
          })
        done(result)
      })
    },
    shutdown: () => exporter.shutdown(),
    forceFlush: async () => exporter.forceFlush?.(),
  }
}
