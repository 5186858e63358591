import type { Logger } from '../logger.ts'
import type { ReadModels, Version } from '../ports/readModels.ts'
import { freeVersion } from './freeVersion.ts'
import { allProjections } from './index.ts'
import { nameOf, type Projection } from './projection.ts'
import { Rebuilds } from './rebuilds.ts'
import { recordSkipped, skippedOf } from './skippedFacts.ts'

interface Deps {
  readonly readModels: ReadModels
  readonly logger: Pick<Logger, 'info'>
  /** The names of the versions that living nodes read; undefined if there is one node. */
  readonly namesRead?: () => Promise<ReadonlySet<string>>
  /** Removes the position that was reported of a version. Called before its documents serve another one. */
  readonly forget?: (name: string) => Promise<void>
  /** Those of another build, in tests. */
  readonly projections?: readonly Projection[]
}

/**
 * Lets read models whose version was raised continue with the documents of their earlier version, and requests the rebuilds
 * that replace these documents. Called before the projectors begin. Documents that a living node reads are left to it: it
 * belongs to the earlier build and serves them. A crash at any point leaves what the next start continues or builds.
 */
export const serveEarlier = async (deps: Deps): Promise<void> => {
  const { readModels, projections = allProjections } = deps
  const rebuilds = await Rebuilds.open(readModels)
  const stored = await readModels.versions()
  const served = projections.map((projection) => serveEarlierOf(projection, { ...deps, rebuilds, stored }))
  await Promise.allSettled(served) // a repetition after a failure does not meet work that goes on
  await Promise.all(served)
}

const serveEarlierOf = async (
  projection: Projection,
  {
    readModels,
    logger,
    namesRead = () => Promise.resolve(new Set()),
    forget,
    rebuilds,
    stored,
  }: Deps & { readonly rebuilds: Rebuilds; readonly stored: readonly Version[] },
): Promise<void> => {
  const name = nameOf(projection)
  const known = await rebuilds.get(name)
  if (known?.state === 'failed' && known.from_version !== null)
    await rebuilds.request(name, { verify: known.verify })
  const earlier = stored
    .filter((version) => version.name === projection.name && version.version < projection.version)
    .toSorted((a, b) => b.version - a.version)[0]
  if (!earlier || !(await isNew(readModels, projection, stored))) return
  const from_version = await foldedBy(rebuilds, earlier)
  if (from_version < (projection.servesFrom ?? projection.version - 1)) return
  const isUnread = () => freeVersion({ namesRead, ...(forget && { forget }) }, earlier)
  if ((await namesRead()).has(nameOf(earlier)) || !(await isFilled(projection, earlier, readModels))) return
  await readModels.writer(projection)
  await rebuilds.request(name, { verify: false, from_version }) // first: documents of an earlier fold never stay
  const lacking = await skippedOf(readModels, nameOf(earlier))
  await recordSkipped(readModels, name, lacking) // first: after a crash, those of the earlier version are gone
  if (!(await readModels.replace(projection, earlier, isUnread)))
    return rebuilds.change(name, { state: 'done' }) // a node of the earlier build came back
  logger.info(`The documents of ${nameOf(earlier)} are served until those of ${name} are built`)
}

const isNew = async (
  readModels: ReadModels,
  projection: Projection,
  stored: readonly Version[],
): Promise<boolean> =>
  !stored.some((version) => nameOf(version) === nameOf(projection)) ||
  (await (await readModels.writer(projection)).checkpoint()) === null

/** The version that folded the documents. An upgrade may have come before the rebuild of the former one was done. */
const foldedBy = async (rebuilds: Rebuilds, version: Version): Promise<number> => {
  const known = await rebuilds.get(nameOf(version))
  return known && known.state !== 'done' && known.from_version !== null ? known.from_version : version.version
}

/** Whether an earlier version contains events. */
const isFilled = async (
  projection: Projection,
  { version }: Version,
  readModels: ReadModels,
): Promise<boolean> => (await readModels.reader({ ...projection, version }).checkpoint()) !== null
