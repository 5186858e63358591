import { isRetryable } from '../errors.ts'
import type { Logger } from '../logger.ts'
import type { ReadModels, Version } from '../ports/readModels.ts'
import { allProjections } from './index.ts'
import { nameOf, type Projection } from './projection.ts'
import { Rebuilds } from './rebuilds.ts'
import { renameSkipped } from './skippedFacts.ts'

interface Deps {
  readonly readModels: ReadModels
  readonly logger: Pick<Logger, 'info'>
  /** Those of another build, in tests. */
  readonly projections?: readonly Projection[]
}

/**
 * Lets read models whose version was raised continue with the documents of their earlier version, and requests the rebuilds
 * that replace these documents. Called before the projectors begin, if no other node reads these read models: in a cluster,
 * nodes of the earlier build serve theirs. A crash at any point leaves what the next start continues.
 */
export const serveEarlier = async ({
  readModels,
  logger,
  projections = allProjections,
}: Deps): Promise<void> => {
  const rebuilds = await Rebuilds.open(readModels)
  const stored = await readModels.versions()
  for (const projection of projections) {
    const name = nameOf(projection)
    const known = await rebuilds.get(name)
    if (known?.state === 'failed' && known.from_version !== null)
      await rebuilds.request(name, { verify: known.verify })
    const earlier = stored
      .filter((version) => version.name === projection.name && version.version < projection.version)
      .toSorted((a, b) => b.version - a.version)[0]
    if (!earlier || !(await isNew(readModels, projection, stored))) continue
    const from_version = await foldedBy(rebuilds, earlier)
    if (from_version < (projection.servesFrom ?? projection.version - 1)) continue
    if (!(await canContinue(projection, earlier, readModels))) continue
    await readModels.writer(projection)
    await rebuilds.request(name, { verify: false, from_version }) // first: documents of an earlier fold never stay
    await readModels.replace(projection, earlier)
    await renameSkipped(readModels, { from: nameOf(earlier), to: name })
    logger.info(`The documents of ${nameOf(earlier)} are served until those of ${name} are built`)
  }
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

/** Whether an earlier version has been filled, and has the same indexes. Its writer refuses others. */
const canContinue = async (
  projection: Projection,
  { version }: Version,
  readModels: ReadModels,
): Promise<boolean> => {
  try {
    return (await (await readModels.writer({ ...projection, version })).checkpoint()) !== null
  } catch (error) {
    if (isRetryable(error)) throw error
    return false
  }
}
