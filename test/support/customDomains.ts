import { request } from 'node:https'
import { connect, type PeerCertificate, type TLSSocket } from 'node:tls'
import type { Static } from 'typebox'
import type * as schemas from '../../src/api/schemas.ts'
import { deploy, type Webhook } from './build.ts'
import type { Api } from './http.ts'
import type { startPebble } from './pebble.ts'
import type { TestServer } from './server.ts'
import { until } from './until.ts'

export type Domain = Static<typeof schemas.Domain>

export const ZONE = 'svc.test'
const TIMEOUT_MS = 60_000

/** A service with its certificate authority. */
export interface Place {
  readonly pebble: Awaited<ReturnType<typeof startPebble>>
  readonly server: TestServer
}

/** The port in the line of the log that begins with `text`. */
const portIn = ({ output }: TestServer, text: string): number =>
  Number(
    output
      .filter((line) => line.includes(text))
      .map((line) => /"port":(\d+)/.exec(line)?.[1])
      .at(-1) ?? 0,
  )
export const dnsPort = (server: TestServer) => portIn(server, 'The name server of')
const tlsPort = (server: TestServer) => portIn(server, 'served over TLS')

export const get = (api: Api, { domain_id }: Pick<Domain, 'domain_id'>) =>
  api.get<Domain>(`/domains/${domain_id}`)
export const reached = (api: Api, domain: Domain, status: string) =>
  until(
    async () => {
      const now = await get(api, domain)
      return now.status === status ? now : undefined
    },
    { timeoutMs: TIMEOUT_MS },
  )

/** Registers a domain and creates the records that its owner would create. */
export const activate = async ({ server: { api }, pebble }: Place, name: string): Promise<Domain> => {
  const domain = await api.post<Domain>('/domains', { domain: name })
  await pebble.setCname(domain.validation_cname_name, domain.validation_cname_value)
  const { routing_domain } = await reached(api, domain, 'provisioning')
  await pebble.setCname(name, routing_domain ?? '')
  return reached(api, domain, 'active')
}

/** The certificate that a client gets for a name; rejects if the handshake fails. */
export const certificateOf = async (
  { server, pebble }: Place,
  servername: string,
): Promise<PeerCertificate> => {
  const ca = await pebble.root()
  return new Promise((resolve, reject) => {
    const socket: TLSSocket = connect({ port: tlsPort(server), host: '127.0.0.1', servername, ca }, () => {
      resolve(socket.getPeerCertificate())
      socket.destroy()
    })
    socket.on('error', reject)
  })
}
export const isRefused = (place: Place, servername: string) =>
  certificateOf(place, servername).then(
    () => false,
    () => true,
  )

/** Sends a request as a client on the internet does: it trusts the root of the authority, and checks the name. */
export const call = async ({ server, pebble }: Place, name: string, path: string, host = name) => {
  const ca = await pebble.root()
  return new Promise<{ status: number; text: string }>((resolve, reject) => {
    const options = { port: tlsPort(server), host: '127.0.0.1', servername: name, ca, agent: false }
    const sent = request({ ...options, path, method: 'POST', headers: { Host: host } }, (reply) => {
      let text = ''
      reply.on('data', (chunk) => (text += String(chunk)))
      reply.on('end', () => resolve({ status: reply.statusCode ?? 0, text }))
    })
    sent.on('error', reject).end()
  })
}

export const webhookPath = async (api: Api): Promise<string> => {
  await deploy(api, 'hooks', {
    'h.js': `import { fn } from 'svc'
      export const hook = fn({ webhook: { service: 's', path: '/a' } }, (request) => request['original-url'])`,
  })
  const { data } = await api.page<Webhook>('/projects/hooks/webhooks')
  const [, , path] = /\/webhook\/(\w+\/\w+)(\/.*)$/.exec(data[0]?.url ?? '') ?? []
  return `/webhook${path}`
}
