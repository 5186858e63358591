import * as assert from 'uvu/assert'
import type { ApiDeps, FrontDeps } from '../../src/api/deps.ts'
import { none, operatorRoute, type PublicRoute, publicRoute } from '../../src/api/route.ts'
import { healthRoutes } from '../../src/api/routes/health.ts'
import { suite } from '../support/suite.ts'

const shared = {
  method: 'GET',
  path: '/x',
  operationId: 'x',
  summary: 'x',
  tag: 'x',
  reply: { kind: 'none' },
} as const

/** The compiler checks these rules: a line that compiles although an error is expected is an error itself. */
const types = suite('the type of a route')

types('lets a route that is served before the API use only what exists by then', () => {
  const allowed: PublicRoute<FrontDeps> = publicRoute({
    ...shared,
    handle: ({ deps }) => (deps.notReady() === null ? none : none),
  })
  const forbidden: PublicRoute<FrontDeps> = publicRoute({
    ...shared,
    // @ts-expect-error: the read models belong to the API
    handle: ({ deps }) => (deps.views ? none : none),
  })
  // @ts-expect-error: a route of the API has more dependencies than a health check
  const widened: PublicRoute<FrontDeps> = publicRoute({
    ...shared,
    handle: ({ deps: { views } }: { deps: Pick<ApiDeps, 'views'> }) => (views ? none : none),
  })
  assert.is(new Set([allowed, forbidden, widened]).size, 3)
  assert.is(
    healthRoutes.every(({ needs }) => needs === null),
    true,
  )
})

types('gives the environment of a caller only to routes with a credential', () => {
  operatorRoute({
    ...shared,
    // @ts-expect-error: the operator belongs to no environment
    handle: ({ caller }) => (caller ? none : none),
  })
  operatorRoute({
    ...shared,
    // @ts-expect-error: the cause of the operator has no environment that must exist
    handle: ({ operator }) => (operator.cause.env_id.length > 0 ? none : none),
  })
  publicRoute({
    ...shared,
    // @ts-expect-error: a public request has no credential
    handle: ({ credential }) => (credential ? none : none),
  })
})

types.run()
