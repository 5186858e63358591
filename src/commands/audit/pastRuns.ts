import type { Projection } from '../../projections/projection.ts'
import { evolveRun, type RunDoc, runs } from '../../projections/runs.ts'
import { loggedAt } from '../../events/event.ts'
import { streamOf } from '../../events/streams.ts'
import { isBy } from './moment.ts'
import type { Past } from './past.ts'

type RunFold = Pick<Projection<RunDoc>, 'handles' | 'idsOf' | 'evolve'>

/** The run as it was; undefined if it had not started. */
export const runThen = async (past: Past, doc: RunDoc): Promise<RunDoc | undefined> =>
  (await runsThen(past, [doc]))[0]

/** Those of the runs that had started, as they were. A run whose facts have expired is returned as it is. */
export const runsThen = async (past: Past, docs: readonly RunDoc[]): Promise<readonly RunDoc[]> => {
  const begun = docs.filter((doc) => hadBegun(past, doc))
  const found = await fold(past, begun)
  return begun.map((doc) => found.get(doc.run_id) ?? doc)
}

const fold = (past: Past, docs: readonly RunDoc[]): Promise<ReadonlyMap<string, RunDoc>> => {
  const wanted = new Set(docs.map(({ run_id }) => run_id))
  const idsOf: RunFold['idsOf'] = (fact) => runs.idsOf(fact).filter((id) => wanted.has(id)) // others take memory
  const streams = new Set(docs.map(({ stream_id }) => streamOf.stream(stream_id)))
  return past.fold({ ...runs, idsOf, evolve: evolveRun }, streams) // without the statistics
}

/** Whether a run or event had begun. */
export const hadBegun = (past: Past, doc: Pick<RunDoc, 'order'>): boolean => isBy(past.moment, startOf(doc))

/** The place of the fact with which a document began, as its `order` contains it. */
const startOf = ({ order }: Pick<RunDoc, 'order'>) => {
  const [at = '', cursor = ''] = order.split('/')
  return { at, cursor }
}

/** An `order` beyond those of all runs that had started by then. "0" is the character after "/". */
export const orderBeyond = async (past: Past): Promise<string | undefined> => {
  if ('time' in past.moment) return `${past.moment.time}0`
  const next = await past.next()
  return next && `${loggedAt(next)}/${next.cursor}`
}
