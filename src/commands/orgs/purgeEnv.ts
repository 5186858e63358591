import { clock } from '../../clock.ts'
import { MAX_STORING_MS } from '../../content/contentKey.ts'
import { payloadsOf } from '../../content/payloads.ts'
import { repliesOf } from '../../content/replyKey.ts'
import { isAppError } from '../../errors.ts'
import { bySystem } from '../../events/actor.ts'
import type { EnvCause } from '../../events/event.ts'
import { streamOf } from '../../events/streams.ts'
import { everyDoc } from '../../loops/everyDoc.ts'
import type { CommandDeps } from '../deps.ts'
import { deleteFile } from '../files/deleteFile.ts'
import { discardContent } from '../files/discardContent.ts'
import { endUpload } from '../files/endUpload.ts'
import { uploadState } from '../files/uploadFor.ts'
import type { DiscardDeps } from '../projects/discardBuild.ts'
import { removeProject } from '../projects/removeProject.ts'
import { dropConsumers } from '../streams/forgetConsumers.ts'
import { deleteApiKeys } from './deleteEnv.ts'
import { dayAfterAll, removeCalls } from './removeCalls.ts'

/**
 * What was in progress at the deletion of an environment has ended after this time: the content of a file arrives within
 * `MAX_STORING_MS`, and runs take at most 15 minutes. The rest is for the facts that follow.
 */
export const LAST_MS = MAX_STORING_MS + 20 * 60_000

export type PurgeDeps = Pick<CommandDeps, 'aggregates' | 'blobs' | 'dataKeys' | 'store' | 'views'> &
  Pick<DiscardDeps, 'runtime'>

/**
 * Removes the content of a deleted environment: credentials, runs in progress, projects with their builds, files, uploads,
 * custom domains, consumers, secrets, large payloads and large replies. The facts that it appends remove runs and events from the read
 * models, with what runs did in the audit. It may be repeated.
 * `final`: nothing that was in progress at the deletion can add content any more.
 */
export const purgeEnv = async (
  deps: PurgeDeps,
  { env_id, final }: { env_id: string; final: boolean },
): Promise<void> => {
  const { aggregates, blobs, dataKeys, views } = deps
  const cause: EnvCause = { env_id, correlation_id: env_id, ...bySystem('purge') }
  // Other nodes learn about the end of the keys from the log.
  await deleteApiKeys({ aggregates, views, authenticator: { ended() {} } }, { env_id }, cause)
  await views.settled('runs', 'projects', 'files', 'uploads', 'domains')
  await cancelRuns(deps, cause)
  await removeAll(
    everyDoc(views.projects, { id: 'project_id', equal: { env_id }, sort: 'order' }),
    (project) => removeProject(deps, project, cause),
  )
  await removeAll(everyDoc(views.files, { id: 'file_id', equal: { env_id }, sort: 'path' }), (file) =>
    deleteFile(deps, file, cause),
  )
  await removeAll(everyDoc(views.uploads, { id: 'upload_id', equal: {}, sort: 'expires_at' }), (upload) =>
    upload.env_id === env_id ? removeUpload(deps, upload.upload_id, cause) : undefined,
  )
  await removeAll(everyDoc(views.domains, { id: 'domain_id', equal: { env_id }, sort: 'order' }), (domain) =>
    aggregates.domains.handle(
      streamOf.domains(domain.org_id),
      { type: 'DeleteDomain', domain_id: domain.domain_id },
      cause,
    ),
  )
  await dropConsumers(deps, cause)
  await dataKeys.destroy({ env_id }, { final: true }, cause)
  for (const prefix of [payloadsOf(env_id), repliesOf(env_id)])
    for await (const { key } of blobs.list(prefix)) await blobs.remove(key)
  await removeCalls({ aggregates, views }, { env_id, before: dayAfterAll(clock.now()) }, cause)
  await aggregates.envs.handle(streamOf.env(env_id), { type: 'RecordPurge', env_id, final }, cause)
}

/** Removes each thing, unless it is gone already. */
const removeAll = async <Thing>(
  things: AsyncIterable<Thing>,
  remove: (thing: Thing) => Promise<unknown> | undefined,
): Promise<void> => {
  for await (const thing of things) {
    try {
      await remove(thing)
    } catch (error) {
      if (!isAppError(error, 'not_found')) throw error
    }
  }
}

const cancelRuns = async ({ aggregates, views }: PurgeDeps, cause: EnvCause): Promise<void> => {
  const { env_id } = cause
  for (const status of ['running', 'pending_retry'])
    await removeAll(
      everyDoc(views.runs, { id: 'run_id', equal: { env_id, status }, sort: 'order' }),
      ({ run_id, stream_id }) =>
        aggregates.streams.handle(
          streamOf.stream(stream_id),
          { type: 'CancelRun', run_id, now: clock.iso() },
          cause,
        ),
    )
}

const removeUpload = async (deps: PurgeDeps, upload_id: string, cause: EnvCause): Promise<void> => {
  const state = await uploadState(deps, upload_id)
  if (state.status !== 'pending' && state.status !== 'joined') return
  await endUpload(deps, state.upload, { reason: 'expired', seen: state.status }, cause)
  await discardContent(deps.blobs, state.upload.key) // no file of a deleted environment needs it
}
