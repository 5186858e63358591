import Type from 'typebox'
import { AppError } from '../../errors.ts'
import { domainNameOf } from '../../ports/domainName.ts'
import { clientIp } from '../http/clientIp.ts'
import { own, type PublicRoute, publicRoute } from '../route.ts'

/** For a TLS proxy that obtains certificates on demand, such as Caddy. The answer is in memory. */
export const askRoutes: readonly PublicRoute[] = [
  publicRoute({
    method: 'GET',
    path: '/ask',
    operationId: 'askDomain',
    summary: 'Ask whether a TLS proxy may obtain a certificate for a domain',
    description:
      'Returns 200 for a proved custom domain, and 404 for every other name. A proxy must ask before it obtains a ' +
      'certificate; otherwise anyone can make it exceed the limits of its certificate authority.',
    tag: 'Domains',
    query: Type.Object({
      domain: Type.String({ maxLength: 1000, description: 'The name that a client asks for' }),
    }),
    errors: ['not_found', 'rate_limit_exceeded'],
    reply: { kind: 'bare', schema: Type.Object({ domain: Type.String() }) },
    handle: ({ ctx, query, deps }) => {
      const domain = domainNameOf(query.domain)
      if (domain === null || !deps.views.directory.domains.proved(domain)) {
        deps.asks.count(clientIp(ctx.req, deps))
        throw new AppError('not_found', 'No such custom domain')
      }
      ctx.body = { domain }
      return own
    },
  }),
]
