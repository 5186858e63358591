import type { checksOf } from './checks.ts'
import { parseUrl } from './values.ts'

/** The standard variables of OpenTelemetry that the service supports. */
export interface Traces {
  /** The URL of the collector, without `/v1/traces`. */
  readonly endpoint: string
  /** They may contain secrets. */
  readonly headers: Readonly<Record<string, string>>
  readonly serviceName: string
  /** The share of the traces that begin here and are recorded, 0 to 1. */
  readonly ratio: number
}

export const readTraces = ({
  check,
  checkSecret,
}: Pick<ReturnType<typeof checksOf>, 'check' | 'checkSecret'>): Traces | null => {
  const endpoint = check<string | null>(
    'OTEL_EXPORTER_OTLP_ENDPOINT',
    null,
    parseUrl,
    'the http or https URL of a collector that accepts OTLP over HTTP, without /v1/traces, such as http://127.0.0.1:4318',
  )
  const headers = checkSecret<Traces['headers']>(
    'OTEL_EXPORTER_OTLP_HEADERS',
    {},
    parseHeaders,
    'name=value pairs, separated by commas, such as api-key=a%20b,tenant=1',
  )
  const serviceName = check('OTEL_SERVICE_NAME', 'svc', (text) => text, 'a name')
  const ratio = check(
    'OTEL_TRACES_SAMPLER_ARG',
    1,
    (text) => (/^(?:0|1|0?\.\d+|1\.0+)$/.test(text) ? Number(text) : undefined),
    'a number from 0 to 1, the share of the traces that are recorded, such as 0.1',
  )
  return endpoint === null ? null : { endpoint, headers, serviceName, ratio }
}

/** `name=value` pairs with percent-encoded values, as OpenTelemetry defines them. */
const parseHeaders = (text: string): Record<string, string> | undefined => {
  try {
    const pairs = text.split(',').map((pair) => {
      const [, name = '', value = ''] = /^\s*([A-Za-z0-9-]+)\s*=\s*(.*?)\s*$/.exec(pair) ?? []
      return [name, decodeURIComponent(value)] as const
    })
    return pairs.every(([name]) => name !== '') ? Object.fromEntries(pairs) : undefined
  } catch {
    return undefined
  }
}
