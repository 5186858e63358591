import type { ContextVariable } from '../../client/index.ts'
import { api, isGone } from '../frame/api.ts'
import { useLoaded } from '../frame/load.ts'
import { param } from '../frame/router.ts'
import { offsetOf, PAGE } from '../parts/pager.tsx'
import { NoProject, ProjectPage } from '../parts/projectChoice.tsx'
import { List } from '../parts/list.tsx'
import type { Column } from '../parts/table.tsx'
import { Empty, Time } from '../parts/texts.tsx'
import { CreateSecret, SecretActions } from './secrets/secretActions.tsx'

/** The context variables of a project. The service never returns their values. */
export const Secrets = () => <ProjectPage name="Secrets" content={SecretsOf} />

const SecretsOf = ({ project }: { readonly project: string }) => {
  const secrets = useLoaded(
    (signal) =>
      api.request('GET /v1/projects/{project}/context', {
        path: { project },
        query: { limit: PAGE, offset: offsetOf() },
        signal,
      }),
    [project, param('offset')],
  )
  if (isGone(secrets.error)) return <NoProject project={project} />
  const columns: readonly Column<ContextVariable>[] = [
    { name: 'Key', cell: ({ key }) => <code>{key}</code> },
    { name: 'Description', cell: ({ description }) => description },
    { name: 'Created', cell: ({ created_at }) => <Time at={created_at} /> },
    { name: 'Value set', cell: ({ updated_at }) => <Time at={updated_at} /> },
    {
      name: 'Actions',
      cell: (secret) => <SecretActions project={project} secret={secret} onDone={secrets.reload} />,
    },
  ]
  return (
    <>
      <p class="hint">
        Functions of the project read a value with <code>context(key)</code>. Nothing shows a stored value.
      </p>
      <CreateSecret project={project} onDone={secrets.reload} />
      <List
        of={secrets}
        caption="Secrets"
        columns={columns}
        idOf={({ key }) => key}
        empty={
          <Empty command={`npx svc secrets set PAYMENT_KEY --project ${project}`}>
            This project has no secret. Create one here or on the command line:
          </Empty>
        }
      />
    </>
  )
}
