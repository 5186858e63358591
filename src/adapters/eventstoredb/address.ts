import { addressRefusal, decodedPart } from '../shared/addressRefusal.ts'

export interface Address {
  /** The connection string of the client, without the options of svc and without a connection name. */
  readonly connectionString: string
  /** The first part of the name of each connection, as the server lists it. */
  readonly connectionName: string
  /** The prefix of every stream, type and group name, so that several installations can share one server. */
  readonly prefix: string
  /** User and password, for calls that require them. A server without authentication ignores them. */
  readonly login: { readonly username: string; readonly password: string }
  /** For messages and logs: hosts without user and password. */
  readonly place: string
}

/** Timeout of a gossip request. With the client's default of 5 s, callers would wait too long for a paused node. */
const GOSSIP_TIMEOUT_S = 1

/**
 * Parses `esdb://[user:pass@]host[:2113][,host…][?prefix=…&option=…]`, also `esdb+discover://`. All options
 * except `prefix` are those of the client. Throws `bad_request` with the setting.
 */
export const parseAddress = (url: string): Address => {
  const refused = addressRefusal('SVC_EVENT_STORE', url)
  const decoded = (text: string): string =>
    decodedPart(text, () => refused('expected user and password URI-encoded'))
  const [, scheme, user, hosts, query] =
    /^(esdb(?:\+discover)?):\/\/(?:([^@/]*)@)?([^/?@]+)\/?(?:\?(.*))?$/.exec(url) ?? []
  if (!scheme || !hosts) {
    throw refused('expected esdb://host:2113?tls=false or embedded:')
  }
  const options = new URLSearchParams(query)
  const prefix = options.get('prefix') ?? ''
  if (!/^[A-Za-z0-9_.-]{0,64}$/.test(prefix)) {
    throw refused('expected a prefix of at most 64 letters, digits, `_`, `.` and `-`')
  }
  options.delete('prefix')
  const connectionName = options.get('connectionName') ?? 'svc'
  options.delete('connectionName')
  if (!options.has('gossipTimeout')) options.set('gossipTimeout', String(GOSSIP_TIMEOUT_S))
  const login = user === undefined ? '' : `${user}@`
  const [username = '', password = ''] = (user ?? '').split(':').map(decoded)
  return {
    connectionString: `${scheme}://${login}${hosts}?${options.toString()}`,
    connectionName,
    prefix,
    login: { username, password },
    place: `${scheme}://${hosts}`,
  }
}
