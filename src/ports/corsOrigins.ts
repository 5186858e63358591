/** The origins whose pages may use the API from a browser. */
export interface CorsOrigins {
  /** Such as `https://app.example`, as browsers send them. */
  readonly exact: ReadonlySet<string>
  /** Such as `http://localhost`, with any port. */
  readonly anyPort: ReadonlySet<string>
}

/** `http` and `https` on this machine, with any port. */
const LOOPBACK = ['localhost', '127.0.0.1', '[::1]'].flatMap((host) => [`http://${host}`, `https://${host}`])

/**
 * Parses `https://app.example,http://localhost:*`; `loopback` means the names of this machine with any port. Returns
 * undefined for anything else: `*` would let every page on the Web use a session that leaked to it.
 */
export const parseCorsOrigins = (text: string): CorsOrigins | undefined => {
  const exact = new Set<string>()
  const anyPort = new Set<string>()
  for (const part of text.split(',').map((entry) => entry.trim())) {
    const [, base, wildcard] = /^(https?:\/\/[^/\\?#@*\s]+?)(:\*)?$/i.exec(part) ?? []
    const origin = base !== undefined && URL.canParse(base) ? new URL(base).origin : undefined
    if (part === 'loopback') LOOPBACK.forEach((one) => anyPort.add(one))
    else if (origin === undefined || (wildcard && PORT.test(base ?? ''))) return undefined
    else (wildcard ? anyPort : exact).add(origin)
  }
  return { exact, anyPort }
}

const PORT = /:\d*$/

/** Whether pages of an origin may use the API; `origin` is an `Origin` header. */
export const isAllowedOrigin = ({ exact, anyPort }: CorsOrigins, origin: string): boolean =>
  exact.has(origin) || anyPort.has(origin.replace(PORT, ''))
