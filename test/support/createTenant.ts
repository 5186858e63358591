import { cliJson } from './cli.ts'

/** Creates an organization with the environment `prod` by the command line. Resolves with its id and a key of it. */
export const createTenant = async (
  env: Readonly<Record<string, string>>,
  { org, plan }: { readonly org: string; readonly plan: string },
): Promise<{ readonly env_id: string; readonly token: string }> => {
  await cliJson(['orgs', 'create', org, '--plan', plan], { env })
  const { env_id } = await cliJson<{ env_id: string }>(['envs', 'create', org, 'prod'], { env })
  const { token } = await cliJson<{ token: string }>(['keys', 'create', `${org}/prod`, '--name', 'test'], {
    env,
  })
  return { env_id, token }
}
