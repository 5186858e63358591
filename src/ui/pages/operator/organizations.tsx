import type { Page } from '../../../client/index.ts'
import { ask } from '../../frame/api.ts'
import { useLoaded } from '../../frame/load.ts'
import { linkTo, param } from '../../frame/router.ts'
import { Action } from '../../parts/action.tsx'
import { TextField } from '../../parts/fields.tsx'
import { offsetOf, PAGE } from '../../parts/pager.tsx'
import { List } from '../../parts/list.tsx'
import type { Column } from '../../parts/table.tsx'
import { Empty, Time } from '../../parts/texts.tsx'
import { useFields } from '../../parts/useFields.ts'
import type { Org } from './org.ts'
import { Environments, placeOf } from './environments.tsx'
import { ChangeOrg, DeleteOrg, PlanField } from './orgActions.tsx'
import { Usage } from './usage.tsx'

/** The organizations; a chosen one with its usage and its environments. */
export const Organizations = () => {
  const chosen = param('org')
  const offset = offsetOf()
  const orgs = useLoaded(
    (signal) => ask<Page<Org>>('GET /operator/orgs', { query: { limit: PAGE, offset }, signal }),
    [offset],
  )
  const columns: readonly Column<Org>[] = [
    {
      name: 'Organization',
      cell: ({ slug }) => (
        <a
          href={linkTo('/operator', { ...placeOf(), org: slug })}
          aria-current={slug === chosen ? 'true' : undefined}
        >
          {slug}
        </a>
      ),
    },
    { name: 'Name', cell: ({ name }) => name },
    { name: 'Plan', cell: ({ plan }) => plan },
    { name: 'Team members', isNumber: true, cell: ({ team_members }) => team_members },
    { name: 'Created', cell: ({ created_at }) => <Time at={created_at} /> },
    {
      name: 'Actions',
      cell: (org) => (
        <div class="buttons">
          <ChangeOrg of={org} onDone={orgs.reload} />
          <DeleteOrg of={org} onDone={orgs.reload} />
        </div>
      ),
    },
  ]
  return (
    <>
      <section aria-labelledby="organizations">
        <h2 id="organizations">Organizations</h2>
        <div class="toolbar">
          <Create onDone={orgs.reload} />
        </div>
        <List
          of={orgs}
          caption="Organizations, the newest first"
          columns={columns}
          idOf={({ org_id }) => org_id}
          empty={<Empty command="npx svc orgs create acme --plan pro">There is no organization.</Empty>}
        />
      </section>
      {chosen && <Usage key={`usage of ${chosen}`} org={chosen} />}
      {chosen && <Environments key={chosen} org={chosen} />}
    </>
  )
}

const Create = ({ onDone }: { readonly onDone: () => void }) => {
  const first: { slug: string; name: string; plan: Org['plan'] } = { slug: '', name: '', plan: 'free' }
  const { slug, name, plan, begin } = useFields(first)
  return (
    <Action
      label="Create organization"
      does="Creates an organization without environments. Its slug is part of the addresses of its webhooks."
      onOpen={begin}
      run={async (idempotencyKey) => {
        const org = await ask<Org>('POST /operator/orgs', {
          idempotencyKey,
          body: { slug: slug.value, plan: plan.value, ...(name.value && { name: name.value }) },
        })
        onDone()
        return `Created the organization ${org.slug}.`
      }}
    >
      <TextField
        label="Slug"
        hint="Lowercase letters, digits and hyphens"
        required
        placeholder="acme"
        value={slug.value}
        onChange={(value) => (slug.value = value)}
      />
      <TextField label="Name" value={name.value} onChange={(value) => (name.value = value)} />
      <PlanField value={plan.value} onChange={(value) => (plan.value = value)} />
    </Action>
  )
}
