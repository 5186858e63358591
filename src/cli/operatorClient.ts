import { AppError, messageOf } from '../errors.ts'
import { readClientConfig } from '../process/config.ts'
import { operatorTokenIn } from '../process/secretsFile.ts'

/** The operator API of a running service. */
export interface OperatorClient {
  /** Resolves with `data` of the reply. Rejects with the error of the service, or with `unavailable`. */
  request<T>(method: 'GET' | 'POST', path: string, body?: unknown): Promise<T>
}

/** The token of the environment, else the one that `npm start` in the same directory uses. */
export const operatorToken = (): string => {
  const { dataDir, masterKey, operatorToken: given } = readClientConfig()
  const token = given ?? operatorTokenIn(dataDir, masterKey)
  if (token !== null) return token
  throw new AppError(
    'unauthorized',
    `no operator token in ${dataDir}; set SVC_OPERATOR_TOKEN, or set SVC_DATA_DIR to the directory of the service`,
  )
}

export const connect = (): OperatorClient => {
  const { url } = readClientConfig()
  const authorization = `Bearer ${operatorToken()}`
  return {
    async request<T>(method: string, path: string, body?: unknown): Promise<T> {
      const response = await fetch(url + path, {
        method,
        headers: { authorization, ...(body !== undefined && { 'content-type': 'application/json' }) },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      }).catch((error: unknown) => {
        throw new AppError(
          'unavailable',
          `${url} does not answer (${reasonOf(error)}); start it, or set SVC_URL`,
        )
      })
      const text = await response.text()
      if (response.status === 401)
        throw new AppError('unauthorized', `${url} refused the operator token; set SVC_OPERATOR_TOKEN`)
      const reply = parsed(text)
      if (response.ok && reply !== null && 'data' in reply) return reply.data as T
      const message = (reply?.error as { message?: unknown } | undefined)?.message ?? text.slice(0, 200)
      throw new AppError('internal_server_error', `${url} replied ${response.status}: ${String(message)}`)
    },
  }
}

const parsed = (text: string): { readonly data?: unknown; readonly error?: unknown } | null => {
  try {
    const value = JSON.parse(text) as unknown
    return typeof value === 'object' ? value : null
  } catch {
    return null // the reply of something else, such as a proxy
  }
}

const reasonOf = (error: unknown): string => {
  const cause = error instanceof Error ? error.cause : undefined
  return cause instanceof Error && 'code' in cause ? String(cause.code) : messageOf(error)
}
