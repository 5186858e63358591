import { AppError } from '../../errors.ts'

export interface Address {
  /** What the client is opened with: without what is ours alone. */
  readonly connectionString: string
  /** Before every stream, type and group name, so that several installations share one server; mostly empty. */
  readonly prefix: string
  /** User and password, for calls that want them; a server without authentication ignores them. */
  readonly login: { readonly username: string; readonly password: string }
  /** For people and logs: hosts without user and password. */
  readonly place: string
}

/** Seconds a gossip question may take: the client's own 5 would keep callers waiting for a paused node. */
const GOSSIP_TIMEOUT_S = 1

/**
 * `esdb://[user:pass@]host[:2113][,host…][?prefix=…&option=…]`, also `esdb+discover://`; every option but
 * `prefix` is the client's own. Throws `bad_request` that names the setting.
 */
export const parseAddress = (url: string): Address => {
  const [, scheme, user, hosts, query] =
    /^(esdb(?:\+discover)?):\/\/(?:([^@/]*)@)?([^/?@]+)\/?(?:\?(.*))?$/.exec(url) ?? []
  if (!scheme || !hosts) {
    throw new AppError('bad_request', 'SVC_EVENT_STORE: expected esdb://host:2113?tls=false or embedded:')
  }
  const options = new URLSearchParams(query)
  const prefix = options.get('prefix') ?? ''
  if (!/^[A-Za-z0-9_.-]{0,64}$/.test(prefix)) {
    throw new AppError('bad_request', 'SVC_EVENT_STORE: prefix takes letters, digits, `_`, `.` and `-`')
  }
  options.delete('prefix')
  if (!options.has('gossipTimeout')) options.set('gossipTimeout', String(GOSSIP_TIMEOUT_S))
  const login = user === undefined ? '' : `${user}@`
  const [username = '', password = ''] = (user ?? '').split(':').map(decodeURIComponent)
  return {
    connectionString: `${scheme}://${login}${hosts}?${options.toString()}`,
    prefix,
    login: { username, password },
    place: `${scheme}://${hosts}`,
  }
}
