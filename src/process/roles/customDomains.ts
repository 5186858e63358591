import type Koa from 'koa'
import { ServerCertificates } from '../../api/http/serverCertificates.ts'
import { type ApiServer, listen } from '../../api/server.ts'
import { openNameserver } from '../../nameserver/openNameserver.ts'
import { domainNameOf } from '../../ports/domainName.ts'
import type { Node } from './node.ts'

/** Serves custom domains over TLS, each with its own certificate. Null without `SVC_TLS_PORT`. */
export const listenTls = async (node: Node, front: Koa): Promise<ApiServer | null> => {
  const { tlsPort, host, trustedProxies } = node.config
  if (tlsPort === null) return null
  const certificates = new ServerCertificates(node)
  const { logger } = node
  const server = await listen(front, {
    port: tlsPort,
    host,
    trustedProxies,
    logger,
    onAccepted: () => node.turns.accepted(),
    certificateOf: (servername) => certificates.contextOf(servername),
  })
  node.onClose(() => server.close())
  logger.info('Custom domains are served over TLS', { port: server.port })
  return server
}

/**
 * Serves the zone to which the owners of custom domains point `_acme-challenge`: the certificate authority finds the answers to its
 * challenges there. Resolves with its port; null without `SVC_ACME_DNS_PORT`.
 */
export const serveChallenges = async ({
  config,
  views,
  logger,
  onClose,
}: Pick<Node, 'config' | 'views' | 'logger' | 'onClose'>): Promise<number | null> => {
  const { acmeDnsPort, domainsZone, host, publicUrl } = config
  if (acmeDnsPort === null) return null
  const server = (publicUrl === null ? null : domainNameOf(new URL(publicUrl).hostname)) ?? domainsZone
  const { domains } = views.directory
  const valuesOf = (label: string) => domains.byId(label)?.challenge ?? null
  const zone = { origin: `acme.${domainsZone}`, server, valuesOf }
  const nameserver = await openNameserver({ host, port: acmeDnsPort, zone })
  onClose(() => nameserver.close())
  logger.info(`The name server of ${zone.origin} listens`, { port: nameserver.port })
  return nameserver.port
}
