import Type from 'typebox'
import { clock } from '../../clock.ts'
import { admitDomain } from '../../domain/customDomains.ts'
import { DOMAIN_PATTERN, domainNameOf, isIn } from '../../ports/domainName.ts'
import { AppError, isAppError } from '../../errors.ts'
import { streamOf } from '../../events/streams.ts'
import { timeOf } from '../../ids.ts'
import { termsOf } from '../../plans/plans.ts'
import type { DomainDoc } from '../../projections/domains.ts'
import { advanceDomain } from '../../commands/advanceDomain.ts'
import type { ApiDeps } from '../deps.ts'
import { type Ask, item, list, none, route } from '../route.ts'
import { Domain, PageQuery } from '../schemas.ts'

const tag = 'Domains'

const present = ({ org_id: _, since: __, order: ___, ...domain }: DomainDoc) => domain

const path = ({ domain_id }: { domain_id: string }) => [domain_id]

/** A domain of the caller's environment; what lies elsewhere does not exist (I7). */
const domainOf = async ({
  params: { domain_id },
  credential,
  deps: { views },
}: Pick<Ask<{ domain_id: string }>, 'params' | 'credential' | 'deps'>): Promise<DomainDoc> => {
  await views.settled('domains')
  const doc = await views.domains.get(domain_id)
  if (doc?.env_id !== credential.env_id) throw new AppError('not_found', `No domain ${domain_id}`)
  return doc
}

const nameIn = (text: string, { domainsZone, publicUrl }: ApiDeps): string => {
  const name = domainNameOf(text)
  if (name === null) {
    throw new AppError(
      'bad_request',
      `domain: expected a domain name such as hooks.example.com, got "${text.slice(0, 60)}"`,
    )
  }
  if (isIn(domainsZone, name) || name === new URL(publicUrl()).hostname)
    throw new AppError('bad_request', `domain: ${name} belongs to this service`)
  return name
}

/** How long a reservation waits for its domain before it is given to another one: the node that made it died. */
const STALE_MS = 10_000

const reserve = async (
  { aggregates, views }: ApiDeps,
  domain: string,
  holder: string,
  cause: { env_id: string; correlation_id: string },
): Promise<void> => {
  const stream = streamOf.domainName(domain)
  const command = { type: 'ReserveName', name: domain, holder, taken: 'domain_exists' } as const
  try {
    await aggregates.names.handle(stream, command, cause)
  } catch (error) {
    if (!isAppError(error, 'domain_exists')) throw error
    const other = String(error.data['holder'])
    const exists = new AppError('domain_exists', `domain: ${domain} is registered already`, { cause: error })
    await views.settled('domains')
    if ((await views.domains.get(other)) || timeOf(other) > clock.now() - STALE_MS) throw exists
    await aggregates.names.handle(stream, { ...command, gone: other }, cause)
  }
}

const register = async ({
  body,
  credential,
  deps,
  request_id,
  caller: { newId },
}: Ask<unknown, unknown, { domain: string }>): Promise<DomainDoc> => {
  const { aggregates, views, domainsZone } = deps
  const { env_id } = credential
  const domain = nameIn(body.domain, deps)
  await views.settled('domains')
  const env = views.directory.env(env_id)
  if (!env) throw new AppError('not_found', 'No such environment')
  const { org_id, plan } = env
  const { maxDomains: max } = termsOf[plan]
  const domain_id = newId('domain')
  const stream = streamOf.domains(org_id)
  await aggregates.domains.read(stream, (known) => {
    if (!known.has(domain_id)) admitDomain(known, max) // before the caller is told that the name is taken
  })
  const cause = { env_id, correlation_id: request_id, actor: credential.id }
  await reserve(deps, domain, domain_id, cause)
  const fact = {
    type: 'DomainRegistered',
    domain_id,
    org_id,
    domain,
    validation_cname_name: `_acme-challenge.${domain}`,
    validation_cname_value: `${domain_id}.acme.${domainsZone}`,
  } as const
  try {
    await aggregates.domains.handle(stream, { type: 'RegisterDomain', fact, max }, cause)
  } catch (error) {
    await aggregates.names.handle(
      streamOf.domainName(domain),
      { type: 'ReleaseName', name: domain, holder: domain_id },
      cause,
    )
    throw error
  }
  return domainOf({ params: { domain_id }, credential, deps })
}

/** Looks the records up now, instead of when the saga would. */
const verify = async (ask: Ask<{ domain_id: string }>) => {
  const { deps, request_id } = ask
  const before = await domainOf(ask)
  if (before.status === 'deleting')
    throw new AppError('conflict', `domain: ${before.domain} is being deleted`)
  const seen = await advanceDomain({ ...deps, zone: deps.domainsZone }, before, request_id).then(
    ({ seen }) => (seen === null ? 'there is none yet' : `it points to ${seen}`),
    (error: unknown) => {
      if (!isAppError(error, 'unavailable')) throw error
      return 'it could not be looked up, try again'
    },
  )
  const { domain_id, domain, status, ...doc } = await domainOf(ask)
  if (status === 'pending_validation') {
    const record = `${doc.validation_cname_name} CNAME ${doc.validation_cname_value}`
    return { domain_id, domain, status, message: `Expected the DNS record ${record}; ${seen}` }
  }
  const message =
    status === 'active'
      ? 'The domain is active'
      : `Validated. Now make the DNS record ${domain} CNAME ${doc.routing_domain}`
  return { domain_id, domain, status: 'validated', message }
}

const Verification = Type.Object({
  ...Type.Pick(Domain, ['domain_id', 'domain']).properties,
  status: Type.Union([Type.Literal('validated'), Type.Literal('pending_validation')]),
  message: Type.String({ description: 'The DNS record to make next' }),
})

export const domainRoutes = [
  route({
    method: 'GET',
    path: '/v1/domains',
    summary: 'List the custom domains of the environment',
    tag,
    needs: { type: 'domain', action: 'read' },
    query: PageQuery,
    reply: { kind: 'list', schema: Domain },
    handle: async ({ query, credential: { env_id }, deps: { views } }) => {
      await views.settled('domains')
      const { items, total } = await views.domains.find({
        equal: { env_id },
        sort: 'order',
        descending: true,
        ...query,
      })
      return list(items.map(present), total, query)
    },
  }),

  route({
    method: 'POST',
    path: '/v1/domains',
    summary: 'Register a custom domain',
    description:
      'Prove it by the CNAME record `validation_cname_name` → `validation_cname_value`, then point the domain to ' +
      '`routing_domain`. Both records are looked for by themselves; `verify` looks at once.',
    tag,
    needs: { type: 'domain', action: 'create' },
    body: Type.Object({
      domain: Type.String({
        minLength: 1,
        maxLength: 1000,
        description: 'International names too',
        documented: { pattern: DOMAIN_PATTERN, maxLength: 253 },
      }),
    }),
    example: { domain: 'hooks.example.com' },
    errors: ['plan_required', 'domain_limit_reached', 'domain_exists'],
    reply: { kind: 'item', status: 201, schema: Domain },
    handle: async (ask) => item(present(await register(ask)), 201),
  }),

  route({
    method: 'GET',
    path: '/v1/domains/:domain_id',
    summary: 'Get a custom domain',
    tag,
    needs: { type: 'domain', action: 'read', path },
    reply: { kind: 'item', schema: Domain },
    handle: async (ask) => item(present(await domainOf(ask))),
  }),

  route({
    method: 'POST',
    path: '/v1/domains/:domain_id/verify',
    summary: 'Look for the DNS record of a custom domain now',
    tag,
    needs: { type: 'domain', action: 'create', path },
    reply: { kind: 'item', schema: Verification },
    handle: async (ask) => item(await verify(ask)),
  }),

  route({
    method: 'DELETE',
    path: '/v1/domains/:domain_id',
    summary: 'Delete a custom domain',
    description:
      'At once it stands for the environment no longer; it is listed as `deleting` until nothing is left.',
    tag,
    needs: { type: 'domain', action: 'delete', path },
    reply: { kind: 'none' },
    handle: async (ask) => {
      const { domain_id, org_id, env_id } = await domainOf(ask)
      await ask.deps.aggregates.domains.handle(
        streamOf.domains(org_id),
        { type: 'DeleteDomain', domain_id },
        { env_id, correlation_id: ask.request_id, actor: ask.credential.id },
      )
      return none
    },
  }),
]
