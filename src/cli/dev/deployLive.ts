import type { Bundle } from '../../bundle/bundle.ts'
import type { BuildFunction, DeployedBuild } from '../../client/api.ts'
import type { Client } from '../../client/index.ts'
import { uploadBuild } from '../uploadBuild.ts'

/** A build on which functions run. */
export interface LiveBuild {
  readonly build_id: string
  readonly sha256: string
  readonly functions: readonly BuildFunction[]
  readonly changes: DeployedBuild['changes']
  readonly warnings: readonly string[]
}

/** Uploads a bundle as the live build of its project and deploys it. The signal ends the upload. Rejects with a `ServiceError`. */
export const deployLive = async (
  client: Client,
  project: string,
  { zip, sha256 }: Pick<Bundle, 'zip' | 'sha256'>,
  signal: AbortSignal,
): Promise<LiveBuild> => {
  const upload = { project, zip, sha256, live: true, signal }
  const { build_id, functions, warnings } = await uploadBuild(client, upload)
  const deployed = await client.request('POST /v1/projects/{project}/builds/{build_id}/deploy', {
    path: { project, build_id },
  })
  return {
    build_id,
    sha256,
    functions,
    changes: deployed.changes,
    warnings: [...warnings, ...deployed.warnings],
  }
}
