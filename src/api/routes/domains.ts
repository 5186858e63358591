import Type from 'typebox'
import { pastOf } from '../../commands/audit/past.ts'
import { AppError } from '../../errors.ts'
import { deleteDomain } from '../../commands/customDomains/deleteDomain.ts'
import { expiryOf } from '../../commands/customDomains/expireClaim.ts'
import { domainMessage } from '../../commands/customDomains/domainMessage.ts'
import { domainFor } from '../../commands/customDomains/domainFor.ts'
import { registerDomain } from '../../commands/customDomains/registerDomain.ts'
import { verifyDomain } from '../../commands/customDomains/verifyDomain.ts'
import { DOMAIN_PATTERN } from '../../ports/domainName.ts'
import { type DomainDoc, domains } from '../../projections/customDomains.ts'
import { AsOfQuery } from '../asOf.ts'
import { item, none, route } from '../route.ts'
import { listOf, PageQuery } from '../paging.ts'
import { fieldsOf } from '../present/fieldsOf.ts'
import { Domain } from '../schemas.ts'

const tag = 'Domains'

const present = (doc: DomainDoc) => {
  const expiry = expiryOf(doc)
  return {
    ...fieldsOf(Domain, doc),
    expires_at: expiry === null ? null : new Date(expiry).toISOString(),
    certificate_expires_at: doc.certificate?.not_after ?? null,
    message: domainMessage(doc),
  }
}

const path = ({ domain_id }: { domain_id: string }) => [domain_id]

const Verification = Type.Object({
  ...Type.Pick(Domain, ['domain_id', 'domain']).properties,
  status: Type.Union([Type.Literal('validated'), Type.Literal('pending_validation')]),
  message: Type.String({ description: 'What to do next, such as the DNS record to create' }),
})

export const domainRoutes = [
  route({
    method: 'GET',
    path: '/v1/domains',
    operationId: 'listDomains',
    summary: 'List the custom domains of the environment',
    tag,
    needs: { type: 'domain', action: 'read' },
    query: PageQuery,
    reply: { kind: 'list', schema: Domain },
    handle: ({ query, credential: { env_id }, deps: { views } }) =>
      listOf(views, 'domains', { equal: { env_id }, ...query }, present),
  }),

  route({
    method: 'POST',
    path: '/v1/domains',
    operationId: 'createDomain',
    summary: 'Register a custom domain',
    description:
      'First create the CNAME record `validation_cname_name` → `validation_cname_value` to prove that the domain is ' +
      'yours, then point the domain to `routing_domain`. The service checks both records regularly; `verify` checks ' +
      'at once. A domain that is not proved by `expires_at` is removed. If another environment has registered your ' +
      'domain without proof, the 409 names a record: create it and register the domain again. Keep both records: a ' +
      'domain that no longer points to `routing_domain` stops serving. `message` explains what is missing.',
    tag,
    needs: { type: 'domain', action: 'create' },
    body: Type.Object({
      domain: Type.String({
        minLength: 1,
        maxLength: 1000,
        description: 'International names are accepted',
        documented: { pattern: DOMAIN_PATTERN, maxLength: 253 },
      }),
    }),
    example: { domain: 'hooks.example.com' },
    errors: ['plan_required', 'domain_limit_reached', 'domain_exists'],
    reply: { kind: 'item', status: 201, schema: Domain },
    handle: async ({ body, deps, caller }) => item(present(await registerDomain(deps, body, caller)), 201),
  }),

  route({
    method: 'GET',
    path: '/v1/domains/:domain_id',
    operationId: 'getDomain',
    summary: 'Get a custom domain',
    tag,
    needs: { type: 'domain', action: 'read', path },
    query: AsOfQuery,
    reply: { kind: 'item', schema: Domain },
    handle: async ({ params: { domain_id }, query: { as_of }, deps, credential: { env_id } }) => {
      if (as_of === undefined) return item(present(await domainFor(deps, env_id, domain_id)))
      const domain = await (await pastOf(deps, as_of)).resource(domains, env_id, domain_id)
      if (!domain) throw new AppError('not_found', `There was no domain ${domain_id} then`)
      return item(present(domain))
    },
  }),

  route({
    method: 'POST',
    path: '/v1/domains/:domain_id/verify',
    operationId: 'verifyDomain',
    summary: 'Check the DNS record of a custom domain now',
    tag,
    needs: { type: 'domain', action: 'create', path },
    reply: { kind: 'item', schema: Verification },
    handle: async ({ params, deps, caller }) => item(await verifyDomain(deps, params, caller)),
  }),

  route({
    method: 'DELETE',
    path: '/v1/domains/:domain_id',
    operationId: 'deleteDomain',
    summary: 'Delete a custom domain',
    description:
      'The domain stops serving the environment at once. It is listed as `deleting` until its removal is complete.',
    tag,
    needs: { type: 'domain', action: 'delete', path },
    reply: { kind: 'none' },
    handle: async ({ params, deps, caller }) => {
      await deleteDomain(deps, params, caller)
      return none
    },
  }),
]
