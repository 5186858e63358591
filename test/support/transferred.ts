import type { Embedded } from './backedUp.ts'
import { getAnswers } from './getAnswers.ts'
import { type Api, openApi } from './http.ts'

/** Routes about credentials and domains, which are not transferred, and about positions of the log, which differ. */
const BOUND = [
  '/v1/audit',
  '/v1/files/uploads/',
  '/v1/sessions',
  '/v1/service-keys',
  '/v1/domains',
  '/v1/org/usage',
  '/v1/env/subscribe',
  '/operator/',
]

/** A client with a new API key of an imported environment. */
export const newKey = async (server: Embedded, env_id: string): Promise<Api> => {
  const { token } = await server.operator.post<{ token: string }>(
    `${server.url}/operator/envs/${env_id}/api-keys`,
    { name: 'after the import' },
  )
  return openApi(server.url, token)
}

/** What an environment answers, without what is bound to an installation: tokens in URLs, and where content is stored. */
export const answersOf = async (server: Embedded, api: Api): Promise<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(await getAnswers(api, server.operator, { upload_id: '', without: BOUND })).map(
      ([path, answer]) => [
        path,
        answer
          .replaceAll(/\\"storage_backend\\":\\"\w+\\"/g, '')
          .replaceAll(/\/[0-9A-Za-z]{33}\\"/g, '/TOKEN\\"'),
      ],
    ),
  )
