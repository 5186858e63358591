import type { Build } from '../../../client/index.ts'
import { api } from '../../frame/api.ts'
import { param, setQuery } from '../../frame/router.ts'
import { Action } from '../../parts/action.tsx'
import { saveBlob } from '../../parts/json.tsx'
import { refusalIn } from '../../parts/projectChoice.tsx'
import { shortId } from '../../parts/texts.tsx'
import { Changes, changesText } from './changes.tsx'

interface Props {
  readonly project: string
  readonly build: Build
  readonly deployed: Build | undefined
  readonly onDone: () => void
}

/** Deploys, downloads or deletes a build. The deployment of an earlier build is a rollback. */
export const BuildActions = ({ project, build, deployed, onDone }: Props) => {
  const { build_id } = build
  const path = { project, build_id }
  const isEarlier = deployed !== undefined && build.created_at < deployed.created_at
  return (
    <div class="buttons">
      {!build.deployed && (
        <Action
          label={isEarlier ? 'Roll back' : 'Deploy'}
          does={`Replaces the deployed build of ${project} by ${build_id}. Running runs continue with the build that they began with.`}
          refusal={refusalIn(project, 'build', 'execute')}
          run={async (idempotencyKey) => {
            const { changes, warnings } = await api.request(
              'POST /v1/projects/{project}/builds/{build_id}/deploy',
              { path, idempotencyKey },
            )
            onDone()
            return (
              <>
                Build {shortId(build_id)} is deployed. {changesText(changes)}
                {warnings.length > 0 && (
                  <ul aria-label="Warnings">
                    {warnings.map((warning) => (
                      <li key={warning}>{warning}</li>
                    ))}
                  </ul>
                )}
              </>
            )
          }}
        >
          <Changes project={project} build_id={build_id} />
        </Action>
      )}
      <Action
        label="Download"
        does="Downloads the zip of the build, unchanged."
        run={async () => {
          const response = await api.open('GET /v1/projects/{project}/builds/{build_id}/download', { path })
          saveBlob(`${build_id}.zip`, await response.blob())
          return `Downloaded build ${shortId(build_id)}.`
        }}
      />
      <Action
        label="Delete"
        does={`Deletes build ${build_id} and its zip. Its runs that have not begun fail.`}
        isDangerous
        asks
        refusal={build.deployed ? 'The build is deployed' : refusalIn(project, 'project', 'update')}
        run={async () => {
          await api.request('DELETE /v1/projects/{project}/builds/{build_id}', { path })
          if (param('build') === build_id) setQuery({ build: '' }, { replace: true })
          onDone()
          return `Deleted build ${shortId(build_id)}.`
        }}
      />
    </div>
  )
}
