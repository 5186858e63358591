import type { Static } from 'typebox'
import type * as schemas from '../../src/api/schemas.ts'
import type { Answer, Api } from './http.ts'
import { until } from './until.ts'
import { zipBuild, type ZippedBuild } from './zipBuild.ts'

export type Project = Static<typeof schemas.Project>
export type Build = Static<typeof schemas.Build>
export type DeployedBuild = Static<typeof schemas.DeployedBuild>
export type BuildUpload = Static<typeof schemas.BuildUpload>
export type Webhook = Static<typeof schemas.Webhook>
export type Event = Static<typeof schemas.Event>
export type PublishedEvent = Static<typeof schemas.PublishedEvent>
export type Run = Static<typeof schemas.Run>

/** Contents by path. */
export type Files = Readonly<Record<string, string | Buffer>>

/** The multipart form of an upload, without `undefined` fields. */
export const formOf = (
  { bytes, hash }: ZippedBuild,
  fields: Readonly<Record<string, string | undefined>> = {},
): FormData => {
  const form = new FormData()
  for (const [name, value] of Object.entries({ hash, ...fields }))
    if (value !== undefined) form.set(name, value)
  form.set('file', new Blob([new Uint8Array(bytes)]), 'build.zip')
  return form
}

export const upload = async (
  api: Api,
  project: string,
  files: Files | ZippedBuild,
  fields: Readonly<Record<string, string | undefined>> = {},
): Promise<Answer> =>
  api.send('POST', `/projects/${project}/builds`, {
    body: formOf(isZipped(files) ? files : await zipBuild(files), fields),
  })

const isZipped = (files: Files | ZippedBuild): files is ZippedBuild =>
  Buffer.isBuffer((files as ZippedBuild).bytes)

/** Uploads a build to the project, which is created if necessary, and deploys it. Resolves with the build. */
export const deploy = async (
  api: Api,
  project: string,
  files: Files | ZippedBuild,
): Promise<DeployedBuild> => {
  if ((await api.send('GET', `/projects/${project}`)).status === 404)
    await api.post('/projects', { name: project })
  const { status, json, text } = await upload(api, project, files)
  if (status !== 201) throw new Error(`Expected the upload to be accepted, got ${status} ${text}`)
  const { build_id } = (json as { data: BuildUpload }).data
  return api.post(`/projects/${project}/builds/${build_id}/deploy`)
}

/** Publishes an event; resolves with it as it is read later. */
export const publish = async (
  api: Api,
  event_type: string,
  event_data: unknown = null,
  more: object = {},
): Promise<Event> => {
  const body = { event_type, event_data, ...more }
  const { handlers: _, ...event } = await api.post<PublishedEvent>('/events', body)
  return { ...event, sent_by_run_id: null }
}

export const runsOf = async (api: Api, event_id: string): Promise<Run[]> =>
  (await api.page<Run>(`/events/${event_id}/runs?limit=100`)).data

const isOver = ({ status }: Run): boolean => status !== 'running' && status !== 'pending_retry'

/** Waits until the run has ended, including retries. A failed run is returned, not thrown. */
export const ended = (api: Api, run_id: string): Promise<Run> =>
  until(
    async () => {
      const run = await api.get<Run>(`/runs/${run_id}`)
      return isOver(run) ? run : undefined
    },
    { timeoutMs: 20_000 },
  )

/** Waits until the event has `count` runs and all have ended. The newest is first. */
export const handled = async (
  api: Api,
  event_id: string,
  count = 1,
  { timeoutMs = 20_000 } = {},
): Promise<Run[]> => {
  const ended = async () => {
    const runs = await runsOf(api, event_id)
    return runs.length >= count && runs.every(isOver) ? runs : undefined
  }
  const listed = await until(ended, { timeoutMs })
  return Promise.all(listed.map(async (run) => (run.result_ref ? api.get<Run>(`/runs/${run.run_id}`) : run)))
}

/** Publishes an event with one handler and waits for its run. */
export const handle = async (api: Api, event_type: string, event_data: unknown = null): Promise<Run> => {
  const { event_id } = await publish(api, event_type, event_data)
  return (await handled(api, event_id))[0] as Run
}

/** Calls a function by reference and waits for its run. */
export const call = (api: Api, fn: string, ...args: readonly unknown[]): Promise<Run> =>
  handle(api, 'svc:call', { fn, args })
