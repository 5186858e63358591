import { addressRefusal, decodedPart } from '../shared/addressRefusal.ts'

export interface Address {
  readonly host: string
  readonly port: number
  readonly username: string | undefined
  readonly password: string | undefined
  readonly db: number
  readonly tls: boolean
  /** The prefix of every key and channel, so that several installations can share one server. */
  readonly prefix: string
  /** For messages and logs: without user and password. */
  readonly place: string
}

const DEFAULT_PORT = 6379
const DEFAULT_PREFIX = 'svc:'

/**
 * Parses `redis://[[user]:pass@]host[:6379][/db][?prefix=svc:]`, or `rediss://` with TLS; user and password are
 * URI-encoded. Throws `bad_request` with the setting and without secrets.
 */
export const parseAddress = (url: string): Address => {
  const refused = addressRefusal('SVC_REDIS', url)
  const decoded = (text: string): string | undefined =>
    text === '' ? undefined : decodedPart(text, () => refused('expected user and password URI-encoded'))
  if (!/^rediss?:\/\//.test(url) || !URL.canParse(url)) throw refused('expected redis://host:6379/0')
  const { protocol, hostname, port, username, password, pathname, search, hash, searchParams } = new URL(url)
  const prefix = searchParams.get('prefix') ?? DEFAULT_PREFIX
  if (hostname === '') throw refused('expected redis://host:6379/0')
  if (`${search}${hash}`.includes('@')) throw refused('expected user and password URI-encoded')
  if (port === '0') throw refused('expected a port from 1 to 65535')
  if (!/^\/?\d{0,4}$/.test(pathname)) throw refused('expected the number of a database after the host')
  if (!/^[A-Za-z0-9_.:-]{0,64}$/.test(prefix)) {
    throw refused('expected a prefix of at most 64 letters, digits, `_`, `.`, `:` and `-`')
  }
  const host = hostname.replace(/^\[(.*)\]$/, '$1') // an IPv6 address
  return {
    host,
    port: port === '' ? DEFAULT_PORT : Number(port),
    username: decoded(username),
    password: decoded(password),
    db: Number(pathname.slice(1)),
    tls: protocol === 'rediss:',
    prefix,
    place: `${protocol}//${hostname}:${port || DEFAULT_PORT}${pathname}`,
  }
}
