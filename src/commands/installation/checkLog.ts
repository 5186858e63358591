import { createHash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { counted } from '../../text/counted.ts'
import { AppError, isAppError } from '../../errors.ts'
import type { ReadModels } from '../../ports/readModels.ts'
import type { CommandDeps } from '../deps.ts'
import { storedFacts } from '../storedFacts.ts'
import { blobsLogId, isUsed } from './blobsLogId.ts'
import { hasFacts } from './hasFacts.ts'
import { foreignBlobs } from './openInstallation.ts'
import { type Loss, lossesIn, type Traces } from './lossOf.ts'
import { readInstallation } from './readInstallation.ts'

type Deps = Pick<CommandDeps, 'store' | 'aggregates' | 'blobs'> & { readonly readModels: ReadModels }

/** A loss that an operator has accepted. */
export interface AcceptedLoss {
  /** One sentence with the number of affected events. */
  readonly loss: string
  readonly acceptance: string
  /** The ids of logs that this log is not, but that something was derived from. */
  readonly replaces: readonly string[]
}

/** A loss is confirmed as often, because a read that was cut short looks like one. */
const CONFIRMATIONS = 2
const CONFIRM_MS = 500

/**
 * Compares the log with everything that is derived from it. Rejects with `bad_request` if events are missing, unless
 * `acceptance` is the one that the message names. Resolves with the accepted loss; null when nothing is missing.
 */
export const checkLog = async (deps: Deps, acceptance: string | null): Promise<AcceptedLoss | null> => {
  const { store } = deps
  const isCursor = (text: string) => store.isCursor(text)
  let traces = await tracesIn(deps)
  let losses = lossesIn(traces, isCursor)
  for (let again = 0; losses.length > 0 && again < CONFIRMATIONS; again++) {
    await delay(CONFIRM_MS)
    traces = await tracesIn(deps)
    losses = lossesIn(traces, isCursor)
  }
  if (await lacksBlobs(deps, traces)) throw foreignBlobs('every blob')
  if (losses.length === 0) return null
  const loss = await describe(deps, traces, losses)
  if (losses.some(({ seenBy, missing }) => seenBy === 'blobs' && missing === 'other'))
    throw new AppError('bad_request', `${loss}. ${USE_BLOBS}`)
  const expected = acceptanceOf(traces)
  if (acceptance !== expected)
    throw new AppError(
      'bad_request',
      `${loss}. Restore the missing part from a backup (docs/operations.md, Damage), or start with ` +
        `SVC_ACCEPT_LOSS=${expected} to continue without it`,
    )
  const others = [traces.readModels.log_id, traces.blobs.log_id].filter((id) => id !== null)
  const replaces = [...new Set(others)].filter((id) => !traces.log.ids.includes(id))
  return { loss, acceptance, replaces }
}

const USE_BLOBS =
  'SVC_BLOBS: use the blobs with which the log was written, or restore them from a backup (docs/operations.md, Damage)'

const tracesIn = async ({ store, aggregates, readModels, blobs }: Deps): Promise<Traces> => {
  const folded = await readModels.source() // before the log, because other nodes may go on
  const { checkpoint } = folded
  const installation = await readInstallation({ aggregates })
  const ids = installation?.log_ids ?? []
  const head = await store.head()
  const isWithin = checkpoint !== null && checkpoint <= head && store.isCursor(checkpoint)
  const isFounded = ids.length > 0
  return {
    log: {
      ids,
      hasFacts: isFounded || (await hasFacts(store)),
      head,
      hadCheckpoint: !isWithin || (await store.canHaveHad(checkpoint)),
      remembered: await store.remembered(),
    },
    readModels: folded,
    blobs: { log_id: await blobsLogId(blobs), isUsed: !isFounded && (await isUsed(blobs)) },
  }
}

/** A founded log names its root key instead, which must be in the blobs. */
const lacksBlobs = async ({ store }: Pick<Deps, 'store'>, { log, blobs }: Traces): Promise<boolean> => {
  if (log.ids.length > 0 || !log.hasFacts || blobs.isUsed) return false
  for await (const _ of storedFacts({ store }, ['BuildUploaded', 'FileStored', 'DataKeyCreated'])) return true
  return false
}

const describe = async (deps: Deps, { log, readModels, blobs }: Traces, losses: readonly Loss[]) => {
  const [first] = losses
  const what =
    first?.missing === 'log'
      ? 'The log is missing'
      : first?.missing === 'end'
        ? 'The end of the log is missing'
        : `The log ${log.ids.at(-1) ?? 'of an earlier version'} is another one`
  const seen = await Promise.all(losses.map((loss) => describeOne(deps, loss)))
  const ids = { 'read models': readModels.log_id, blobs: blobs.log_id, 'event store': null }
  const named = losses.flatMap(({ seenBy }) =>
    ids[seenBy] === null ? [] : [`${seenBy} of log ${ids[seenBy]}`],
  )
  return `${what}: ${seen.join('; ')}${named.length > 0 ? ` (${[...new Set(named)].join(', ')})` : ''}`
}

const describeOne = async (
  { store, readModels }: Deps,
  { seenBy, missing, range }: Loss,
): Promise<string> => {
  if (range === null && missing === 'end') return `the ${seenBy} have events that the log lacks`
  if (range === null) return `the ${seenBy} belong to a log that is not here`
  const { after, upTo } = range
  const events = store.countBetween(after, upTo)
  if (events !== null)
    return `the ${seenBy} ${seenBy === 'event store' ? 'remembers' : 'have'} at least ${counted(events, 'event')} that the log lacks`
  const documents = await readModels.countAfter(after).catch((error: unknown) => {
    if (isAppError(error, 'unavailable')) return null // it took too long
    throw error
  })
  const number = documents === null ? 'many documents' : counted(documents, 'document')
  return `the ${seenBy} have ${number} with events that the log lacks`
}

/** Names this loss: another one needs another acceptance. The head is left out, because other nodes may append. */
const acceptanceOf = ({ log, readModels, blobs }: Traces): string =>
  createHash('sha256')
    .update(JSON.stringify([log.ids, log.remembered, readModels, blobs.log_id]))
    .digest('hex')
    .slice(0, 12)
