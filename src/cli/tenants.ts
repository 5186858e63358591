import { AppError } from '../errors.ts'
import { type Operator, path } from './operator.ts'
import { isId } from '../ids.ts'

/** Organizations and environments in the replies of the operator's API. */
export interface Org {
  readonly org_id: string
  readonly slug: string
  readonly name: string
  readonly plan: string
  readonly team_members: number
  readonly created_at: string
}

export interface Env {
  readonly env_id: string
  readonly org_id: string
  readonly name: string
  readonly active: boolean
  /** An import into it is not complete. */
  readonly importing?: boolean
}

/** An environment with the slug of its organization. */
export interface NamedEnv extends Env {
  readonly org: string
}

export const ENV_ARGUMENT = { description: 'the environment: its id, or ORGANIZATION/NAME such as local/dev' }

export const envsOf = async (service: Operator, { slug }: Org): Promise<readonly NamedEnv[]> =>
  (await Array.fromAsync(service.all<Env>(path`/operator/orgs/${slug}/envs`))).map((env) => ({
    ...env,
    org: slug,
  }))

/** Finds an environment by its id, or by the names of its organization and itself. */
export const findEnv = async (service: Operator, text: string): Promise<NamedEnv> => {
  const [slug = '', name, ...rest] = text.split('/')
  if (name === undefined) {
    if (!isId(text))
      throw new AppError(
        'bad_request',
        `Expected ORGANIZATION/NAME or the id of an environment, got "${text}"`,
      )
    const env = await service.request<Env>('GET', path`/operator/envs/${text}`)
    const org = await service.request<Org>('GET', path`/operator/orgs/${env.org_id}`)
    return { ...env, org: org.slug }
  }
  const org = await service.request<Org>('GET', path`/operator/orgs/${slug}`)
  const found = rest.length === 0 && (await envsOf(service, org)).find((env) => env.name === name)
  if (found) return found
  throw new AppError('not_found', `No environment "${text}"; svc envs list ${slug} lists those that exist`)
}
