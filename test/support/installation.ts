import { createHash } from 'node:crypto'
import { basename } from 'node:path'
import { engineUrl, tellExercised } from './engines.ts'

/**
 * The variables of an installation of its own for a data directory. All embedded, unless `SVC_TEST_ENGINES=real`: then on
 * the engines that `SVC_TEST_*` name, each under a name of its own (prefix, database, folder), so that a service started
 * again on the same directory finds its data and no other does.
 */
export const installation = (
  dataDir: string,
  env: Readonly<Record<string, string>> = {},
): Record<string, string> => ({
  PORT: '0',
  SVC_DATA_DIR: dataDir,
  ...(onRealEngines ? realEngines(dataDir) : {}),
  ...env,
})

/** Whether the API is tested on real engines in this process. */
export const onRealEngines = process.env['SVC_TEST_ENGINES'] === 'real'

const realEngines = (dataDir: string): Record<string, string> => {
  const digest = createHash('sha256').update(basename(dataDir))
  const name = `svc_test_${digest.copy().digest('hex').slice(0, 12)}`
  const found: Record<string, string | null> = {
    SVC_EVENT_STORE: withQuery(engineUrl('eventStore') ?? standIn(), 'prefix', `${name}.`),
    SVC_READ_MODELS: withPath(engineUrl('mongodb'), () => `/${name}`),
    SVC_BLOBS: withPath(engineUrl('s3'), (bucket) => `${bucket.replace(/\/$/, '')}/${name}`),
    SVC_REDIS: withQuery(engineUrl('redis'), 'prefix', `${name}:`),
    SVC_MASTER_KEY: digest.digest('base64'),
  }
  return Object.fromEntries(
    Object.entries(found).filter((entry): entry is [string, string] => entry[1] !== null),
  )
}

/** The stand-in that the runner started for the whole run. */
const standIn = (): string | null => {
  const url = process.env['SVC_TEST_STAND_IN'] ?? null
  if (url !== null) tellExercised('EventStoreDB stand-in')
  return url
}

const withQuery = (url: string | null, name: string, value: string): string | null =>
  url === null ? null : `${url}${url.includes('?') ? '&' : '?'}${name}=${value}`

const withPath = (url: string | null, path: (before: string) => string): string | null => {
  if (url === null) return null
  const [, base = '', before = '', query = ''] = /^(\w[\w+]*:\/\/[^/?]+)([^?]*)(\?.*)?$/.exec(url) ?? []
  return base + path(before) + query
}
