import type { Answer, Api, Sent } from '../support/http.ts'
import type { Write } from './ledger.ts'

/** A running service, as its clients see it. */
export interface Target {
  readonly api: Api
  readonly operatorToken: string
}

/** A client that writes one thing after another. `write` rejects when the service is gone. */
export interface Writer {
  write(target: Target): Promise<void>
}

/** The service asks to send the request again later. */
export class Later extends Error {}

/** Sends a request that must succeed. */
export const accepted = async (
  { api }: Target,
  method: string,
  path: string,
  sent: Sent = {},
): Promise<Answer> => {
  const answer = await api.send(method, path, sent)
  if (answer.status >= 200 && answer.status <= 299) return answer
  const message = `Expected ${method} ${path} to be accepted, got ${answer.status} ${answer.text.slice(0, 300)}`
  throw answer.headers.has('retry-after') ? new Later(message) : new Error(message)
}

/** The path of an operator request as a full URL, and its header. */
export const asOperator = (
  { api, operatorToken }: Target,
  path: string,
): readonly [url: string, headers: Sent] => [
  `${api.url}/operator${path}`,
  { headers: { Authorization: `Bearer ${operatorToken}` } },
]

/** Records that the client has received the reply to a write. */
export const acknowledge = (write: Write, { headers }: Answer, id: string): void => {
  write.acknowledged = { request_id: headers.get('x-request-id') ?? '', id }
}

/** The data of a reply. The caller names the type that the API documents. */
export const dataOf = <T>({ json }: Answer): T => (json as { data: T }).data
