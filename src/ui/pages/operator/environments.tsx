import { useSignal } from '@preact/signals'
import type { Environment, Page } from '../../../client/index.ts'
import { ask } from '../../frame/api.ts'
import { useLoaded } from '../../frame/load.ts'
import { linkTo, param, setQuery } from '../../frame/router.ts'
import { Action } from '../../parts/action.tsx'
import { TextField } from '../../parts/fields.tsx'
import { offsetOf, PAGE } from '../../parts/pager.tsx'
import { List } from '../../parts/list.tsx'
import type { Column } from '../../parts/table.tsx'
import { Empty } from '../../parts/texts.tsx'
import { useFields } from '../../parts/useFields.ts'
import { ApiKeys } from '../keys/apiKeys.tsx'

/** The list of organizations on the same page has another one. */
const OFFSET = 'envs_offset'

/** The page of the list of organizations. */
export const placeOf = () => ({ section: 'organizations', offset: param('offset') })

/** The environments of an organization; a chosen one with its API keys. */
export const Environments = ({ org }: { readonly org: string }) => {
  const chosen = param('env')
  const offset = offsetOf(OFFSET)
  const envs = useLoaded(
    (signal) =>
      ask<Page<Environment>>('GET /operator/orgs/{org}/envs', {
        path: { org },
        query: { limit: PAGE, offset },
        signal,
      }),
    [org, offset],
  )
  const columns: readonly Column<Environment>[] = [
    { name: 'Environment', cell: ({ name, importing }) => (importing ? `${name} (importing)` : name) },
    { name: 'Id', cell: ({ env_id }) => <code>{env_id}</code> },
    {
      name: 'API keys',
      cell: ({ env_id }) => (
        <a href={linkTo('/operator', { ...placeOf(), org, env: env_id, [OFFSET]: param(OFFSET) })}>
          Show API keys
        </a>
      ),
    },
    { name: 'Actions', cell: (env) => <Delete of={env} onDone={envs.reload} /> },
  ]
  return (
    <section aria-labelledby="environments">
      <h2 id="environments">Environments of {org}</h2>
      <div class="toolbar">
        <Create org={org} onDone={envs.reload} />
      </div>
      <List
        of={envs}
        offset={OFFSET}
        caption={`Environments of ${org}`}
        columns={columns}
        idOf={({ env_id }) => env_id}
        empty={
          <Empty command={`npx svc envs create ${org} production`}>
            The organization has no environment.
          </Empty>
        }
      />
      {chosen && <ApiKeys env_id={chosen} />}
    </section>
  )
}

const Delete = ({
  of: { env_id, name },
  onDone,
}: {
  readonly of: Environment
  readonly onDone: () => void
}) => {
  const typed = useSignal('')
  return (
    <Action
      label="Delete"
      does={`Deletes the environment ${name} with its projects, runs, events, files, secrets and domains. Its keys end and its webhooks stop at once. This cannot be undone.`}
      isDangerous
      onOpen={() => (typed.value = '')}
      run={async () => {
        if (typed.value !== name) throw new Error(`Name: expected ${name}, got "${typed.value}"`)
        await ask('DELETE /operator/envs/{env_id}', { path: { env_id } })
        if (param('env') === env_id) setQuery({ env: '' }, { replace: true })
        onDone()
        return `Deleted the environment ${name}.`
      }}
    >
      <TextField
        label="Name of the environment, to confirm"
        required
        value={typed.value}
        onChange={(value) => (typed.value = value)}
      />
    </Action>
  )
}

const Create = ({ org, onDone }: { readonly org: string; readonly onDone: () => void }) => {
  const { name, begin } = useFields({ name: '' })
  return (
    <Action
      label="Create environment"
      does={`Creates an environment of ${org}. It needs an API key next.`}
      onOpen={begin}
      run={async (idempotencyKey) => {
        await ask('POST /operator/orgs/{org}/envs', {
          path: { org },
          body: { name: name.value },
          idempotencyKey,
        })
        onDone()
        return `Created the environment ${name.value}.`
      }}
    >
      <TextField
        label="Name"
        required
        placeholder="production"
        value={name.value}
        onChange={(value) => (name.value = value)}
      />
    </Action>
  )
}
