import { constants } from 'node:os'
import type { NetworkError } from './frames.ts'

/** A failure of a connection or lookup, which user code receives with these fields. */
export class EgressError extends Error {
  readonly fields: NetworkError

  constructor(fields: NetworkError) {
    super(fields.message)
    this.fields = fields
  }
}

/** The code of every error by which a policy refuses a target. */
export const REFUSED = 'ERR_EGRESS_REFUSED'

const targetOf = (host: string, port: number | null): string => {
  const shown = host.includes(':') ? `[${host}]` : host
  return port === null ? shown : `${shown}:${port}`
}

const refused = (host: string, port: number | null, reason: string): EgressError => {
  const [what, syscall] = port === null ? ['lookup of', 'getaddrinfo'] : ['connection to', 'connect']
  const message = `The ${what} ${targetOf(host, port)} was refused: ${reason}`
  return new EgressError({
    code: REFUSED,
    message,
    syscall,
    ...(port === null ? { hostname: host } : { address: host, port }),
  })
}

export const refusedBy = {
  spelling: (host: string, port: number | null) =>
    refused(host, port, 'expected a DNS name, or an IP address in its usual form'),

  network: (host: string, port: number | null) =>
    refused(
      host,
      port,
      `the host is not in \`network\` of the project; add "${host}" to \`network\` (PATCH /v1/projects/{project})`,
    ),

  size: (host: string, port: number | null, most: number) =>
    refused(host, port, `the name has more than ${most} addresses`),

  address: (host: string, port: number | null, kind: string) =>
    refused(
      host,
      port,
      `it is ${kind}; functions reach public addresses only, unless the operator adds the target to SVC_EGRESS_ALLOW`,
    ),

  /** `getaddrinfo ENOTFOUND host`, as Node reports it. */
  dns: (hostname: string, code: string) =>
    new EgressError({
      code,
      syscall: 'getaddrinfo',
      hostname,
      message: `getaddrinfo ${code} ${hostname}`,
      ...(code === 'ENOTFOUND' && { errno: -3008 }),
    }),

  /** `connect ECONNREFUSED address:port`, as Node reports it. */
  connect: (code: string, address: string, port: number) =>
    new EgressError({
      code,
      syscall: 'connect',
      address,
      port,
      message: `connect ${code} ${targetOf(address, port)}`,
      ...errnoOf(code),
    }),

  /** `read ECONNRESET`, as Node reports it. */
  stream: (code: string, syscall: string) =>
    new EgressError({ code, syscall, message: `${syscall} ${code}`, ...errnoOf(code) }),

  busy: () =>
    new EgressError({
      code: 'EMFILE',
      syscall: 'connect',
      message:
        'connect EMFILE: the environment has too many open connections; close some of them, or reuse them',
    }),
}

const errnoOf = (code: string): { errno?: number } => {
  const errno = Object.entries(constants.errno).find(([name]) => name === code)?.[1]
  return errno === undefined ? {} : { errno: -errno }
}
