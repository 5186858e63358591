import type { Projection } from '../../projections/projection.ts'
import { evolveRun, type RunDoc, runs } from '../../projections/runs.ts'
import { streamOf } from '../../events/streams.ts'
import { isBy } from './moment.ts'
import type { Past } from './past.ts'

type RunFold = Pick<Projection<RunDoc>, 'handles' | 'idsOf' | 'evolve'>

/** The run as it was; undefined if it had not started. */
export const runThen = async (past: Past, doc: RunDoc): Promise<RunDoc | undefined> => {
  if (!hadBegun(past, doc)) return undefined
  const idsOf: RunFold['idsOf'] = (fact) => runs.idsOf(fact).filter((id) => id === doc.run_id) // others take memory
  const fold: RunFold = { ...runs, idsOf, evolve: evolveRun } // without the statistics
  return (await past.fold(fold, [streamOf.stream(doc.stream_id)])).get(doc.run_id)
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
  return next && `${next.at}/${next.cursor}`
}
