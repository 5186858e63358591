import { createHash } from 'node:crypto'
import { basename } from 'node:path'
import { engineUrl, reportExercised } from './engines.ts'

/** The variables that keep every engine embedded, whatever the tests use otherwise. */
export const EMBEDDED = {
  SVC_EVENT_STORE: 'embedded:',
  SVC_READ_MODELS: 'embedded:',
  SVC_BLOBS: 'embedded:',
  SVC_REDIS: '',
}

/**
 * The variables of a separate installation for a data directory. All engines are embedded, unless
 * `SVC_TEST_ENGINES=real`: then it uses the engines in `SVC_TEST_*`, or those of the running cluster. The prefix,
 * database or folder is derived from the directory, so that a restarted service finds its data and no other does.
 */
export const installation = (
  dataDir: string,
  env: Readonly<Record<string, string>> = {},
): Record<string, string> => ({
  PORT: '0',
  ...(JSON.parse(process.env['SVC_TEST_CLUSTER_ENV'] ?? '{}') as Record<string, string>),
  SVC_LOG_FORMAT: 'text',
  SVC_DATA_DIR: dataDir,
  ...(process.env['SVC_TEST_ENGINES'] === 'real' && !process.env['SVC_TEST_CLUSTER']
    ? realEngines(dataDir)
    : {}),
  ...env,
})

/** The engines in `SVC_TEST_*`, or the stand-in, with a name that is derived from the data directory. */
export const realEngines = (dataDir: string, urlOf = engineUrl): Record<string, string> => {
  const digest = createHash('sha256').update(basename(dataDir))
  const name = `svc_test_${digest.copy().digest('hex').slice(0, 12)}`
  const found: Record<string, string | null> = {
    SVC_EVENT_STORE: withQuery(urlOf('eventStore') ?? standIn(urlOf === engineUrl), 'prefix', `${name}.`),
    SVC_READ_MODELS: withPath(urlOf('mongodb'), () => `/${name}`),
    SVC_BLOBS: withPath(urlOf('s3'), (bucket) => `${bucket.replace(/\/$/, '')}/${name}`),
    SVC_REDIS: withQuery(urlOf('redis'), 'prefix', `${name}:`),
    SVC_MASTER_KEY: digest.digest('base64'),
  }
  return Object.fromEntries(
    Object.entries(found).filter((entry): entry is [string, string] => entry[1] !== null),
  )
}

/** The stand-in that the test runner has started. */
const standIn = (exercised: boolean): string | null => {
  const url = process.env['SVC_TEST_STAND_IN'] ?? null
  if (url !== null && exercised) reportExercised('EventStoreDB stand-in')
  return url
}

const withQuery = (url: string | null, name: string, value: string): string | null =>
  url === null ? null : `${url}${url.includes('?') ? '&' : '?'}${name}=${value}`

const withPath = (url: string | null, path: (before: string) => string): string | null => {
  if (url === null) return null
  const [, base = '', before = '', query = ''] = /^(\w[\w+]*:\/\/[^/?]+)([^?]*)(\?.*)?$/.exec(url) ?? []
  return base + path(before) + query
}
