import { ServiceError } from '../client/index.ts'
import { allPages } from '../client/lists.ts'
import { type AnyInput, dataOf, openTransport } from '../client/transport.ts'
import { operatorTokenIn } from '../process/secretsFile.ts'
import { serviceErrorOf } from './author.ts'
import { type Connection, localConfig, tokenOf } from './connection.ts'
import { unanswered } from './unanswered.ts'
import { WrongUsage } from './wrongUsage.ts'

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
type Input = Pick<AnyInput, 'query' | 'body' | 'headers'>

/** The API of the operator. It uses the transport of `svc/client`, which has the operations of an environment only. */
export interface Operator {
  readonly url: string
  readonly token: string
  /** Resolves with `data` of the reply; a list keeps its `pagination`. Rejects with the error of the service, or with `unavailable`. */
  request<T>(method: Method, path: string, input?: Input): Promise<T>
  /** Reads all pages of a list, in the order of the list. `idOf`: of its items, default all that they contain. */
  all<T>(path: string, query?: Input['query'], idOf?: (item: T) => string): AsyncGenerator<T, void, undefined>
  /** Sends bytes. Resolves and rejects as `request` does. */
  upload<T>(path: string, content: AsyncIterable<Uint8Array>, headers: Input['headers']): Promise<T>
  /** Resolves with a reply that is not JSON, such as a stream or a download. Rejects as `request` does. */
  open(method: Method, path: string, input?: Input): Promise<Response>
}

/** Encodes the values of a path, so that a name cannot become another path. */
export const path = (texts: TemplateStringsArray, ...values: readonly string[]): string =>
  String.raw({ raw: texts }, ...values.map(segmentOf))

const segmentOf = (value: string): string => {
  if (['', '.', '..'].includes(value)) throw new WrongUsage(`expected a name or an id, got "${value}"`)
  return encodeURIComponent(value)
}

/** The token of the environment, else the one that a service in the same directory uses. */
const operatorConnection = (): Connection => {
  const config = localConfig()
  const found = config.operatorToken ?? operatorTokenIn(config.keysDir, config.masterKey)
  const key = tokenOf('SVC_OPERATOR_TOKEN', 'operator token', config, found)
  return { url: config.url, key, what: 'operator token', fix: 'set SVC_OPERATOR_TOKEN', project: null }
}

export const connectOperator = (signal: AbortSignal): Operator => {
  const connection = operatorConnection()
  const { url, key } = connection
  const send = openTransport({
    url,
    token: key,
    retries: 0,
    // A body of unknown size is sent while it is read, which fetch demands to be named.
    fetch: (target, init) => fetch(target, { ...init, duplex: 'half' }),
  })
  const named = async <T>(reply: Promise<T>): Promise<T> => {
    try {
      return await reply
    } catch (error) {
      if (signal.aborted) throw error
      if (error instanceof ServiceError && error.code === 'unreachable' && error.status === 0)
        throw unanswered(url, error.cause)
      throw serviceErrorOf(error, connection) ?? error
    }
  }
  const open = (method: Method, target: string, input?: AnyInput): Promise<Response> =>
    named(send(`${method} ${target}`, { ...input, signal }))
  const request = async <T>(method: Method, target: string, input?: AnyInput): Promise<T> => {
    const reply = await open(method, target, input)
    return (await named(dataOf(reply))) as T
  }
  return {
    url,
    token: key,
    open,
    request,
    upload: (target, content, headers = {}) =>
      request('POST', target, {
        body: ReadableStream.from(content),
        type: 'application/octet-stream',
        headers,
      }),
    all: <T>(target: string, given: Input['query'] = {}, idOf: (item: T) => string = JSON.stringify) =>
      allPages<T>((query) => request('GET', target, { query: { ...given, ...query } }), idOf),
  }
}
