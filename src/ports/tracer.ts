/** Values of a span; no secrets, and no text of users beyond names. */
export type Attributes = Readonly<Record<string, string | number | boolean>>

export interface SpanStart {
  /** `server`: serves a request; `producer`: stores what another node may take; `consumer`: executes it. */
  readonly kind: 'server' | 'producer' | 'consumer'
  /** The trace context that it continues (W3C `traceparent`); absent: it begins a trace. */
  readonly parent?: string | undefined
  readonly attributes?: Attributes
}

/** A piece of work in a trace. */
export interface Span {
  /** The trace context for what follows from it (W3C `traceparent`). */
  readonly traceparent: string
  /** `error`: a code. `name` replaces its first name. */
  end(ending?: { readonly name?: string; readonly attributes?: Attributes; readonly error?: string }): void
}

/** Reports work to a tracing system. It never throws, never waits, and loses spans rather than delay the work. */
export interface Tracer {
  begin(name: string, start: SpanStart): Span
}

const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/

/** Returns the trace context of a header in version 00, undefined if it is not valid (W3C Trace Context, section 3.2). */
export const traceparentOf = (header: string | string[] | undefined): string | undefined => {
  if (typeof header !== 'string') return undefined
  const [, version, trace = '', span = '', flags = '', more] = TRACEPARENT.exec(header) ?? []
  if (version === undefined || version === 'ff' || (version === '00' && more !== undefined)) return undefined
  if (/^0+$/.test(trace) || /^0+$/.test(span)) return undefined
  return `00-${trace}-${span}-0${Number.parseInt(flags, 16) & 1}`
}
