const { SVC_URL = 'http://127.0.0.1:8080', SVC_OPERATOR_TOKEN } = process.env

/**
 * A request to the operator API, which creates environments and their keys. Resolves with the `data` of its reply. With
 * `exists`, something that exists already is no error.
 */
export const operator = async <T>(
  method: 'POST' | 'DELETE',
  path: string,
  body?: unknown,
  { exists = false } = {},
): Promise<T> => {
  if (!SVC_OPERATOR_TOKEN) throw new Error('SVC_OPERATOR_TOKEN: expected the operator token of the service')
  const response = await fetch(`${SVC_URL}/operator${path}`, {
    method,
    headers: { authorization: `Bearer ${SVC_OPERATOR_TOKEN}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  if (!response.ok && !(exists && response.status === 409))
    throw new Error(`${method} ${path}: ${response.status} ${text}`)
  return (text === '' ? null : JSON.parse(text).data) as T
}
