import type { AppError } from '../../errors.ts'
import { addressRefusal, decodedPart } from '../shared/addressRefusal.ts'

export interface Address {
  /** The connection string of the client, without the options of svc and without a connection name. */
  readonly connectionString: string
  /** The first part of the name of each connection, as the server lists it. */
  readonly connectionName: string
  /** The prefix of every stream, type and group name, so that several installations can share one server. */
  readonly prefix: string
  /** For messages and logs: hosts without user and password. */
  readonly place: string
}

const MAX_PORT = 65_535

/** Timeout of a gossip request. With the client's default of 5 s, callers would wait too long for a paused node. */
const GOSSIP_TIMEOUT_S = 1

/**
 * The options of the client. It would print the whole URL, with the password, about any other. `throwOnAppendFailure` is not
 * among them: with `false`, an append that the server refused would count as stored.
 */
const OPTIONS = [
  'connectionName',
  'defaultDeadline',
  'discoveryInterval',
  'gossipTimeout',
  'keepAliveInterval',
  'keepAliveTimeout',
  'maxDiscoverAttempts',
  'nodePreference',
  'tls',
  'tlsCAFile',
  'userCertFile',
  'userKeyFile',
]

/**
 * Parses `esdb://[user:pass@]host[:2113][,host…][?prefix=…&option=…]`, also `esdb+discover://`. All options
 * except `prefix` are those of the client. Throws `bad_request` with the setting.
 */
export const parseAddress = (url: string): Address => {
  const refused = addressRefusal('SVC_EVENT_STORE', url)
  const [, scheme, user, hosts, query] =
    /^(esdb(?:\+discover)?):\/\/(?:([^@/?]*)@)?([^/?@]+)\/?(?:\?([^@]*))?$/.exec(url) ?? []
  if (!scheme || !hosts) {
    throw refused('expected esdb://host:2113?tls=false or embedded:')
  }
  if (user !== undefined && !/^[^:]+:[^:]+$/.test(user))
    throw refused('expected <user>:<password>@ before the host, both URI-encoded')
  for (const part of user?.split(':') ?? [])
    decodedPart(part, () => refused('expected user and password URI-encoded'))
  if (!hosts.split(',').every(isHost))
    throw refused('expected host names or IPv4 addresses, each with a port from 1 to 65535 or with none')
  const options = new URLSearchParams(query)
  checkOptions(options, refused)
  const prefix = options.get('prefix') ?? ''
  if (!/^[A-Za-z0-9_.-]{0,64}$/.test(prefix)) {
    throw refused('expected a prefix of at most 64 letters, digits, `_`, `.` and `-`')
  }
  options.delete('prefix')
  const connectionName = options.get('connectionName') ?? 'svc'
  options.delete('connectionName')
  if (!options.has('gossipTimeout')) options.set('gossipTimeout', String(GOSSIP_TIMEOUT_S))
  const login = user === undefined ? '' : `${user}@`
  return {
    connectionString: `${scheme}://${login}${hosts}?${options.toString()}`,
    connectionName,
    prefix,
    place: `${scheme}://${hosts}`,
  }
}

/** The client would try for ever to reach a port that does not exist. It supports no IPv6 addresses. */
const isHost = (text: string): boolean => {
  const found = /^[A-Za-z0-9._-]+(?::(\d{1,5}))?$/.exec(text)
  const port = Number(found?.[1] ?? 1)
  return found !== null && port >= 1 && port <= MAX_PORT
}

/** The client ignores the case of an option, `_` and `-`. */
const flat = (name: string): string => name.toLowerCase().replace(/[_-]/g, '')

const checkOptions = (options: URLSearchParams, refused: (what: string) => AppError): void => {
  const known = new Set(['prefix', ...OPTIONS].map(flat))
  for (const name of options.keys()) {
    if (flat(name) === 'tlsverifycert' && options.get(name) === 'true') continue
    if (!known.has(flat(name))) throw refused(`expected no other options than prefix, ${OPTIONS.join(', ')}`)
  }
}
