import { MongoClient } from 'mongodb'
import { AppError, messageOf } from '../../errors.ts'

export interface Address {
  /** Not connected yet: it connects at the first command, and again whenever that is needed. */
  readonly client: MongoClient
  readonly database: string
  /** For people and logs: no user, no password. */
  readonly place: string
}

const DEFAULT_DATABASE = 'svc'

/** A server that went away is noticed at this rate, and one that came back used again. */
const HEARTBEAT_MS = 2000
const CONNECT_TIMEOUT_MS = 2000
/** A connection that is silent for this long is given up. */
const SILENCE_MS = 4000

/**
 * `mongodb://[user:pass@]host[:27017][,…][/database][?options]`, or `mongodb+srv://…`; the database is `svc` when
 * none is named. Throws `bad_request` that names the setting and no secret.
 */
export const parseAddress = (url: string): Address => {
  const [, hosts, path] =
    /^mongodb(?:\+srv)?:\/\/(?:[^@/]*@)?([^@/?]+)(?:\/([^?]*))?(?:\?.*)?$/.exec(url) ?? []
  if (hosts === undefined) {
    throw refused('expected mongodb://user:password@host:27017/database, user and password URI-encoded')
  }
  const database = decoded(path) || DEFAULT_DATABASE
  if (!/^[^/\\. "$*<>:|?]{1,63}$/.test(database))
    throw refused('expected the name of a database after the host')
  return { client: clientOf(url), database, place: `MongoDB at ${hosts}, database ${database}` }
}

const clientOf = (url: string): MongoClient => {
  try {
    const client = new MongoClient(url, {
      appName: 'svc',
      serverSelectionTimeoutMS: CONNECT_TIMEOUT_MS,
      connectTimeoutMS: CONNECT_TIMEOUT_MS,
      waitQueueTimeoutMS: CONNECT_TIMEOUT_MS,
      socketTimeoutMS: SILENCE_MS,
      heartbeatFrequencyMS: HEARTBEAT_MS,
      // What a projector was told is stored must outlive the server's next crash: it never goes back to look.
      writeConcern: { w: 'majority', journal: true },
      readPreference: 'primary', // I2: what was written is seen
    })
    return client.on('error', () => {}) // told to who asks
  } catch (error) {
    throw refused(withoutSecrets(messageOf(error), url)) // no cause: the driver's message may hold the whole URL
  }
}

const withoutSecrets = (message: string, url: string): string => {
  const [, user = ''] = /\/\/([^/]*)@/.exec(url) ?? []
  const password = user.slice(user.indexOf(':') + 1)
  const holds = [url, user, password, decoded(password)].some((secret) => secret && message.includes(secret))
  return holds ? 'expected a URL that the driver can read' : message
}

const decoded = (text = ''): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

const refused = (what: string): AppError => new AppError('bad_request', `SVC_READ_MODELS: ${what}`)
