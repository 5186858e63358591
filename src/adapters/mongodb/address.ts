import { MongoClient } from 'mongodb'
import { type AppError, messageOf } from '../../errors.ts'
import { addressRefusal } from '../shared/addressRefusal.ts'

export interface Address {
  /** Returns a client that connects at its first command, and reconnects by itself. */
  readonly newClient: () => MongoClient
  readonly database: string
  /** For messages and logs: without user and password. */
  readonly place: string
}

const DEFAULT_DATABASE = 'svc'

/** Interval of the driver's checks of the server, which detect an outage and its end. */
const HEARTBEAT_MS = 2000
const CONNECT_TIMEOUT_MS = 2000
/** A connection that is silent for this long is closed. */
const SILENCE_MS = 4000

/**
 * Parses `mongodb://[user:pass@]host[:27017][,…][/database][?options]` or `mongodb+srv://…`; the default database
 * is `svc`. Throws `bad_request` with the setting and without secrets.
 */
export const parseAddress = (url: string): Address => {
  const [, hosts, path, query] =
    /^mongodb(?:\+srv)?:\/\/(?:[^@/]*@)?([^@/?]+)(?:\/([^?]*))?(?:\?(.*))?$/.exec(url) ?? []
  if (hosts === undefined || `${path} ${query}`.includes('@')) {
    throw refused(
      url,
      'expected mongodb://<user>:<password>@host:27017/database, user and password URI-encoded',
    )
  }
  const database = decoded(path) || DEFAULT_DATABASE
  if (!/^[^/\\. "$*<>:|?]{1,63}$/.test(database))
    throw refused(url, 'expected a valid database name after the host')
  clientOf(url) // throws if the driver refuses the URL
  return { newClient: () => clientOf(url), database, place: `MongoDB at ${hosts}, database ${database}` }
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
      // An acknowledged write must survive a crash of the server, because a projector never checks it again.
      writeConcern: { w: 'majority', journal: true },
      readPreference: 'primary', // I2: reads see acknowledged writes
    })
    return client.on('error', () => {}) // each command reports its own error
  } catch (error) {
    throw refused(url, withoutSecrets(messageOf(error), url)) // no cause: the driver's message may contain the whole URL
  }
}

const withoutSecrets = (message: string, url: string): string => {
  const [, login = ''] = /\/\/(.*)@/.exec(url) ?? []
  const parts = /^([^:]*):?(.*)$/.exec(login) ?? [] // the user too, which may be the password
  const isExposed = [url, ...parts, ...parts.map(decoded)].some(
    (secret) => secret && message.includes(secret),
  )
  return isExposed ? 'expected a URL that the MongoDB driver can parse' : message
}

const decoded = (text = ''): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

const refused = (url: string, what: string): AppError => addressRefusal('SVC_READ_MODELS', url)(what)
