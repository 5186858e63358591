import { useRef } from 'preact/hooks'
import { ask } from '../../frame/api.ts'
import { param, setQuery } from '../../frame/router.ts'
import { Action } from '../../parts/action.tsx'
import { Choice, TextField } from '../../parts/fields.tsx'
import { useFields } from '../../parts/useFields.ts'
import type { Org } from './org.ts'

type Plan = Org['plan']

const PLANS: readonly (readonly [Plan, string])[] = [
  ['free', 'Free'],
  ['starter', 'Starter'],
  ['pro', 'Pro'],
  ['scale', 'Scale'],
  ['self_host', 'Self-hosted: unlimited'],
]

export const PlanField = (plan: { readonly value: Plan; readonly onChange: (plan: Plan) => void }) => (
  <Choice label="Plan" options={PLANS} {...plan} />
)

interface Props {
  readonly of: Org
  readonly onDone: () => void
}

/** Changes the name, the plan and the team of an organization. */
export const ChangeOrg = ({ of: org, onDone }: Props) => {
  const { name, plan, team_members } = org
  const { begin, ...fields } = useFields({ name, plan, members: String(team_members) })
  const opened = useRef(org)
  return (
    <Action
      label="Change"
      does={`Changes ${org.slug}. A new plan applies from the next request on.`}
      onOpen={() => {
        opened.current = org
        begin()
      }}
      run={async () => {
        const body = changesOf(opened.current, {
          name: fields.name.value,
          plan: fields.plan.value,
          team_members: Number(fields.members.value),
        })
        if (Object.keys(body).length === 0) return `Nothing of ${org.slug} was changed.`
        await ask('PATCH /operator/orgs/{org}', { path: { org: org.slug }, body })
        onDone()
        return `Changed ${org.slug}.`
      }}
    >
      <TextField
        label="Name"
        required
        value={fields.name.value}
        onChange={(value) => (fields.name.value = value)}
      />
      <PlanField value={fields.plan.value} onChange={(value) => (fields.plan.value = value)} />
      <TextField
        label="Team members"
        type="number"
        min={0}
        required
        value={fields.members.value}
        onChange={(value) => (fields.members.value = value)}
      />
    </Action>
  )
}

type Changeable = Pick<Org, 'name' | 'plan' | 'team_members'>

/** The fields that the reader has changed: another operator may have changed the others meanwhile. */
const changesOf = (before: Changeable, after: Changeable): Partial<Changeable> =>
  Object.fromEntries(
    Object.entries(after).filter(([name, value]) => value !== before[name as keyof Changeable]),
  )

/** Deletes an organization without environments. */
export const DeleteOrg = ({ of: { slug }, onDone }: Props) => (
  <Action
    label="Delete"
    does={`Deletes ${slug}. The service refuses this while it has environments: delete them first.`}
    isDangerous
    asks
    run={async () => {
      await ask('DELETE /operator/orgs/{org}', { path: { org: slug } })
      if (param('org') === slug) setQuery({ org: '', env: '' }, { replace: true })
      onDone()
      return `Deleted ${slug}.`
    }}
  />
)
