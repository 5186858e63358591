import { AppError, isAppError } from '../../errors.ts'
import type { Cause } from '../../events/event.ts'
import type { TransferKey } from '../../secrets/transferKey.ts'
import type { CommandDeps } from '../deps.ts'
import { createEnv } from '../orgs/createEnv.ts'
import { createOrg } from '../orgs/createOrg.ts'
import { retentionOf } from '../../plans/plans.ts'
import { checkPlace, type Header, headerOf, type Place } from './importHeader.ts'
import { ImportPause } from './importPause.ts'
import { recordsIn } from './records.ts'
import { type Counts, storeRecords } from './storeRecords.ts'

type Deps = Pick<
  CommandDeps,
  'store' | 'aggregates' | 'views' | 'blobs' | 'payloads' | 'wrappedKeys' | 'dataKeys'
>

export interface Imported extends Counts {
  readonly env_id: string
  readonly org: string
  readonly env: string
}

/**
 * Imports an environment from the records of `exportEnv`, with its ids and times.
 * T1: nobody uses the environment before it is complete: it is created last, or paused meanwhile (`ImportPause`).
 * T2: every step can be repeated: an append of the same facts changes nothing. A repetition continues after a crash, also with
 * a later export.
 * T3: a stream, a resource or an environment that exists with other facts is refused.
 * Rejects with `bad_request` for a file that is damaged or names what it does not contain, and with `conflict`.
 */
export const importEnv = async (
  deps: Deps,
  {
    content,
    transferKey,
  }: { readonly content: AsyncIterable<Uint8Array>; readonly transferKey: TransferKey },
  cause: Cause,
): Promise<Imported> => {
  const records = recordsIn(content)
  const first = await records.next()
  if (first.done) throw new AppError('bad_request', 'Expected a file of svc export, got an empty one')
  const header = headerOf(first.value.line)
  await deps.views.settled()
  const { env_id, org, env } = header
  const place = await checkPlace(deps, header)
  const pause = new ImportPause(deps, { env_id, place }, cause)
  try {
    const { counts, expiring } = await storeRecords(deps, { records, header, place, transferKey, pause })
    await deps.dataKeys.removeDestroyed({ env_id }) // those that an earlier export contained
    await createTenant(deps, { header, place }, cause) // T1
    await pause.end(counts)
    await retain(deps, { env_id, streams: expiring })
    return { env_id, org, env, ...counts }
  } catch (error) {
    await pause.abandon().catch(() => {}) // then a repetition ends the pause
    throw error
  }
}

/** Retentions that are set at a time. */
const RETAINED_AT_ONCE = 64

/** The saga that sets retentions has passed the streams: their environment did not exist. */
const retain = async (
  { store, views }: Pick<Deps, 'store' | 'views'>,
  { env_id, streams }: { readonly env_id: string; readonly streams: readonly string[] },
): Promise<void> => {
  await views.directory.reach(await store.head()) // the read models may need longer for a large file
  const seconds = retentionOf(views.directory.env(env_id)?.plan)
  if (seconds === null) return
  for (let n = 0; n < streams.length; n += RETAINED_AT_ONCE)
    await Promise.all(streams.slice(n, n + RETAINED_AT_ONCE).map((stream) => store.expire(stream, seconds)))
}

const createTenant = async (
  deps: Deps,
  { header, place }: { readonly header: Header; readonly place: Place },
  cause: Cause,
): Promise<void> => {
  if (place !== 'absent') return
  const { org, org_name: name, plan, env } = header
  await createOrg(deps, { slug: org, name, plan }, cause).catch((error: unknown) => {
    if (!isAppError(error, 'conflict')) throw error // it exists
  })
  await createEnv(deps, { org, name: env }, cause).catch(async (error: unknown) => {
    const isSame = isAppError(error, 'conflict') && (await checkPlace(deps, header)) !== 'absent' // another operator imports it too
    if (!isSame) throw error
  })
}
