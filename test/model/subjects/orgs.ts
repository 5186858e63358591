import fc from 'fast-check'
import { changeOrg } from '../../../src/commands/orgs/changeOrg.ts'
import { createEnv, envIdAt } from '../../../src/commands/orgs/createEnv.ts'
import { createOrg } from '../../../src/commands/orgs/createOrg.ts'
import { nameConsumer } from '../../../src/commands/streams/nameConsumer.ts'
import { AppError } from '../../../src/errors.ts'
import type { Plan } from '../../../src/events/org.ts'
import { refuse, type Scenario, type Subject } from '../subject.ts'
import { Ids, type ModelNode, type World } from '../world.ts'

type Command =
  | { readonly op: 'createOrg'; readonly org: string; readonly plan: Plan }
  | {
      readonly op: 'changeOrg'
      readonly org: string
      readonly plan: Plan | null
      readonly members: number | null
    }
  | { readonly op: 'createEnv'; readonly org: string; readonly env: string }
  | { readonly op: 'consumer'; readonly org: string; readonly env: string; readonly name: string }

interface Org {
  plan: Plan
  members: number
  /** The named consumers of each environment. */
  envs: Record<string, Record<string, true>>
}

type State = Record<string, Org>

const MOST_CONSUMERS = { free: 20, pro: 100 } as const
const org = fc.constantFrom('a', 'b', '-wrong')
const plan = fc.constantFrom('free', 'pro')
const env = fc.constantFrom('dev', 'live', 'Wrong')
const name = fc.nat(24).map((n) => `consumer-${n}`)
const op = <const T extends string>(value: T) => fc.constant(value)

/** Organizations, their environments, and the named consumers of these. */
export const orgs: Subject<State, Command> = {
  name: 'orgs',
  initial: { a: { plan: 'free', members: 1, envs: { dev: {} } } },

  commands: fc.oneof(
    { weight: 2, arbitrary: fc.record({ op: op('createOrg'), org, plan }) },
    {
      weight: 2,
      arbitrary: fc.record({
        op: op('changeOrg'),
        org,
        plan: fc.option(plan, { nil: null }),
        members: fc.option(fc.nat(3), { nil: null }),
      }),
    },
    { weight: 3, arbitrary: fc.record({ op: op('createEnv'), org, env }) },
    { weight: 14, arbitrary: fc.record({ op: op('consumer'), org: op('a'), env: op('dev'), name }) },
  ),

  step(state, command) {
    const known = state[command.org]
    if (command.op === 'createOrg') {
      if (command.org === '-wrong') refuse('bad_request')
      if (known) refuse('conflict')
      state[command.org] = { plan: command.plan, members: 1, envs: {} }
      return
    }
    if (command.op === 'createEnv' && command.env === 'Wrong') refuse('bad_request')
    if (!known) return refuse('not_found')
    switch (command.op) {
      case 'changeOrg':
        Object.assign(
          known,
          command.plan && { plan: command.plan },
          command.members !== null && { members: command.members },
        )
        return
      case 'createEnv':
        if (known.envs[command.env]) refuse('conflict')
        known.envs[command.env] = {}
        return
      case 'consumer': {
        const names = known.envs[command.env] ?? refuse('not_found')
        if (names[command.name]) return
        if (Object.keys(names).length >= MOST_CONSUMERS[known.plan as 'free' | 'pro'])
          refuse('quota_exceeded')
        names[command.name] = true
        return
      }
      default:
        return command satisfies never
    }
  },

  view: (state) =>
    Object.fromEntries(
      Object.entries(state).map(([name, { plan, members, envs }]) => [
        name,
        {
          plan,
          members,
          envs: Object.fromEntries(
            Object.entries(envs).map(([env, names]) => [env, Object.keys(names).sort()]),
          ),
        },
      ]),
    ),

  repeats: () => true,
  excuse: () => ({}),
  open: (world) => open(world),
}

const open = async (world: World): Promise<Scenario<Command>> => {
  const { slug: prefix } = await world.openEnv()
  const ids = new Ids()
  const slugOf = (org: string): string => (org.startsWith('-') ? org : `${prefix}-${org}`)
  const cause = { correlation_id: ids.of('operator') }

  await createOrg(world.node(0), { slug: slugOf('a'), plan: 'free' }, cause)
  await createEnv(world.node(0), { org: slugOf('a'), name: 'dev' }, cause)

  const perform = async (node: ModelNode, command: Command): Promise<unknown> => {
    const slug = slugOf(command.org)
    switch (command.op) {
      case 'createOrg':
        await createOrg(node, { slug, plan: command.plan }, cause)
        return
      case 'changeOrg': {
        const { plan, members } = command
        const changes = { ...(plan && { plan }), ...(members !== null && { team_members: members }) }
        await changeOrg(node, { org: slug, ...changes }, cause)
        return
      }
      case 'createEnv':
        await createEnv(node, { org: slug, name: command.env }, cause)
        return
      case 'consumer': {
        await node.views.settled()
        const env = node.views.directory.envAt(slug, command.env)
        if (!env) throw new AppError('not_found', 'no such environment')
        await nameConsumer(node, command.name, ids.caller(env.env_id, 'consumer'))
        return
      }
      default:
        return command satisfies never
    }
  }

  const observe = async ({ views, aggregates }: ModelNode): Promise<unknown> => {
    await views.settled()
    const seen: Record<string, unknown> = {}
    for (const org of ['a', 'b']) {
      const page = { sort: 'order', limit: 10, offset: 0 } as const
      const [found] = (await views.orgs.find({ ...page, equal: { slug: slugOf(org) } })).items
      if (!found) continue
      const envs: Record<string, string[]> = {}
      for (const { env_id, name } of (await views.envs.find({ ...page, equal: { org_id: found.org_id } }))
        .items) {
        if (env_id !== envIdAt(found.slug, name)) throw new Error(`Expected the derived id of ${name}`)
        const consumers = await aggregates.envs.read(`env-${env_id}`, (state) => [...state.consumers])
        envs[name] = consumers.sort()
      }
      seen[org] = { plan: found.plan, members: found.team_members, envs }
    }
    return seen
  }

  return { perform, observe }
}
