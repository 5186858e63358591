import { AppError } from '../../errors.ts'
import { Plan } from '../../events/org.ts'
import { streamOf } from '../../events/streams.ts'
import type { CommandDeps } from '../deps.ts'
import { envIdAt } from '../orgs/createEnv.ts'
import { orgIdOf } from '../orgs/createOrg.ts'
import { checkLabel } from '../orgs/label.ts'
import { expires } from './expiredFacts.ts'
import { EXPORT } from './exportEnv.ts'
import type { TransferRecord } from './records.ts'

/** UTF-16 units of a text: the name of an organization has up to 200 characters, each with one or two. */
const MAX_TEXT = 400

/** The first record of a file: the environment in it. */
export interface Header {
  readonly env_id: string
  readonly env: string
  readonly org_id: string
  readonly org: string
  readonly org_name: string
  readonly plan: Plan
  readonly first: { readonly stream: string; readonly id: string } | null
}

const READABLE: readonly unknown[] = [1, 2, EXPORT.version]
/** The lines of earlier versions have no sums. */
const UNSUMMED: readonly unknown[] = [1, 2]

/** Checks the first record of a file. Throws `bad_request`. */
export const headerOf = (line: TransferRecord['line']): Header => {
  if (line['format'] !== EXPORT.format)
    throw new AppError('bad_request', 'Expected a file of svc export, got another file')
  if (!READABLE.includes(line['version']))
    throw new AppError(
      'bad_request',
      `The file has version ${String(line['version']).slice(0, 20)}, and this svc reads versions up to ${EXPORT.version}; upgrade svc`,
    )
  if (line['sum'] === undefined && !UNSUMMED.includes(line['version']))
    throw new AppError(
      'bad_request',
      'The file is damaged in its first line: copy it again, or export the environment again',
    )
  const text = (name: string, value: unknown = line[name]): string => {
    if (typeof value === 'string' && value.length > 0 && value.length <= MAX_TEXT) return value
    throw new AppError('bad_request', `${name}: expected 1 to ${MAX_TEXT} characters`)
  }
  const [org, env, plan] = [text('org'), text('env'), text('plan')]
  checkLabel('org', org)
  checkLabel('env', env)
  if (!isPlan(plan)) throw new AppError('bad_request', `plan: expected a plan of this build, got ${plan}`)
  const first = line['first'] as Partial<Record<'stream' | 'id', unknown>> | null | undefined
  return {
    env_id: text('env_id'),
    env,
    org_id: text('org_id'),
    org,
    org_name: text('org_name'),
    plan,
    first: first ? { stream: text('first', first.stream), id: text('first', first.id) } : null,
  }
}

const isPlan = (value: string): value is Plan => Plan.anyOf.some((each) => each.const === value)

type PlaceDeps = Pick<CommandDeps, 'store' | 'aggregates' | 'views'>

/** What an import finds: no environment, an empty one, or one that contains the first fact of the file. */
export type Place = 'absent' | 'empty' | 'used'

/** T3: an environment with content is accepted only if it contains the first fact of the file. */
export const checkPlace = async (
  deps: PlaceDeps,
  { env_id, env, org_id, org, first }: Header,
): Promise<Place> => {
  const refuse = (what: string) =>
    new AppError(
      'conflict',
      `${what}: an environment keeps its id only in an organization of the same slug and history`,
    )
  if (org_id !== orgIdOf(org)) throw refuse(`org: the id of "${org}" is not that of a new organization`)
  if (env_id !== envIdAt(org, env)) throw refuse(`env: the id of "${env}" is not that of a new environment`)
  const status = await deps.aggregates.envs.read(streamOf.env(env_id), (state) => state.status)
  if (status === 'deleted')
    throw new AppError('conflict', `env: "${org}/${env}" was deleted here, and its id is not used again`)
  if (status !== 'active') return 'absent'
  if (first !== null)
    for await (const { id, event } of deps.store.read(first.stream)) {
      if (id === first.id) return 'used'
      if (expires(first.stream) && event.type !== 'FactExpired') break
    }
  await checkUnused(deps, env_id)
  return 'empty'
}

/** An environment that exists is accepted while it is empty, as after a first start. */
const checkUnused = async ({ views }: Pick<CommandDeps, 'views'>, env_id: string): Promise<void> => {
  const query = { equal: { env_id }, limit: 1, offset: 0 }
  const found = await Promise.all([
    views.projects.find({ ...query, sort: 'order' }),
    views.events.find({ ...query, sort: 'order' }),
    views.files.find({ ...query, sort: 'path' }),
  ])
  if (found.some(({ total }) => total > 0))
    throw new AppError('conflict', 'The environment exists already and is not empty')
}
