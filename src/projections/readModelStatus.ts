import { AppError } from '../errors.ts'
import { type Cursor, START } from '../events/event.ts'
import type { EventStore } from '../ports/eventStore.ts'
import type { ReadModels } from '../ports/readModels.ts'
import { allProjections } from './index.ts'
import { nameOf, type Projection } from './projection.ts'
import type { Progress } from './projectors.ts'
import { isOver, type RebuildDoc, Rebuilds, rebuilds } from './rebuilds.ts'

/** A read model as an operator sees it. */
export interface ReadModelStatus {
  readonly name: string
  readonly version: number
  /** `building`: it is incomplete, and its readers wait. `rebuilding`: it is served while new documents are built. */
  readonly state: 'building' | 'serving' | 'rebuilding'
  readonly position: Cursor
  /** Events after the position; null if the event store cannot count them. */
  readonly behind: number | null
  readonly documents: number
  /** The rebuild that was requested last. */
  readonly rebuild: (Omit<RebuildDoc, 'lacking' | 'cancelled'> & { readonly behind: number | null }) | null
}

interface Deps {
  readonly readModels: ReadModels
  readonly store: Pick<EventStore, 'head' | 'countBetween'>
  readonly progress: Progress
}

/** The time for which the answer waits for current positions of a projector on another node, milliseconds. */
const PATIENCE_MS = 1000

export const readModelStatus = async ({ readModels, store, progress }: Deps): Promise<ReadModelStatus[]> => {
  const head = await store.head()
  const names = allProjections.map(nameOf)
  const late = AbortSignal.timeout(PATIENCE_MS)
  await Promise.all(names.map((name) => progress.reach(name, head, late)))
  const requested = await readModels.reader<RebuildDoc>(rebuilds).getMany(names)
  return Promise.all(
    allProjections.map(async (projection) => {
      const name = nameOf(projection)
      const collection = readModels.reader(projection)
      const known = progress.position(name)
      const builtTo = progress.building.find((each) => each.name === name)?.builtTo ?? START
      const stored = known === START ? ((await collection.checkpoint()) ?? START) : known
      const position = stored > builtTo ? stored : builtTo
      const doc = requested.get(name)
      return {
        name: projection.name,
        version: projection.version,
        state:
          known === START && head !== START ? 'building' : doc && !isOver(doc) ? 'rebuilding' : 'serving',
        position,
        behind: store.countBetween(position, head),
        documents: await collection.count(),
        rebuild: doc ? rebuildOf(doc, isOver(doc) ? 0 : store.countBetween(doc.position, head)) : null,
      }
    }),
  )
}

const rebuildOf = (
  { lacking: _, cancelled = false, ...doc }: RebuildDoc,
  behind: number | null,
): ReadModelStatus['rebuild'] => ({ ...doc, error: doc.error ?? waitOf(doc.state, cancelled), behind })

/** Why a rebuild has not begun or ended: a node that projects does both within a second. */
const waitOf = (state: RebuildDoc['state'], cancelled: boolean): string | null => {
  if (isOver({ state })) return null
  if (cancelled) return 'it is being cancelled by a node with the role projector'
  return state === 'waiting' ? 'it waits for a node with the role projector' : null
}

/** Gives up the rebuilds of the named read models, or all. Rejects with `conflict` if there is none, and with `not_found`. */
export const cancelRebuild = async (readModels: ReadModels, names: readonly string[]): Promise<void> => {
  const requests = await Rebuilds.open(readModels)
  let isFound = false
  for (const projection of wantedOf(names)) isFound = (await requests.cancel(nameOf(projection))) || isFound
  if (!isFound)
    throw new AppError('conflict', 'No rebuild of these read models is in progress: see svc projections list')
}

/** Requests rebuilds of the named read models; of all if no name is given. Rejects with `not_found` for an unknown name. */
export const requestRebuild = async (
  readModels: ReadModels,
  { names, verify }: { readonly names: readonly string[]; readonly verify: boolean },
): Promise<void> => {
  const requests = await Rebuilds.open(readModels)
  for (const projection of wantedOf(names)) await requests.request(nameOf(projection), { verify })
}

const wantedOf = (names: readonly string[]): ReadonlySet<Projection> =>
  new Set(names.length === 0 ? allProjections : names.map(projectionNamed))

const projectionNamed = (name: string): Projection => {
  const found = allProjections.find((each) => each.name === name || nameOf(each) === name)
  if (found) return found
  const known = allProjections.map((each) => each.name).toSorted()
  throw new AppError(
    'not_found',
    `There is no read model ${JSON.stringify(name)}. Use one of: ${known.join(', ')}`,
  )
}
