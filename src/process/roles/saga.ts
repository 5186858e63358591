import { keepGoing } from '../../loops/keepGoing.ts'
import { Alarms } from '../../sagas/alarms.ts'
import { sweepFiles } from '../../sagas/fileSweep.ts'
import { watchWorkers } from '../../sagas/recovery.ts'
import { retention } from '../../sagas/retention.ts'
import { retries } from '../../sagas/retries.ts'
import { schedules } from '../../sagas/schedules.ts'
import type { Node } from './node.ts'

/** Retries, schedules and the recovery of what dead workers left. Any number of nodes may: the log lets each thing happen once. */
export const startSagas = async (node: Node): Promise<void> => {
  const { store, aggregates, views, quotas, logger, signal, membership } = node
  const alarms = new Alarms()
  node.onClose(() => alarms.close())
  const head = await store.head()
  await views.reach(head)
  void keepGoing(
    'The retry saga',
    (until) => retries({ store, aggregates, runs: views.runs, alarms }, head, until),
    { signal, logger },
  )
  void keepGoing(
    'The schedule saga',
    (until) => schedules({ aggregates, directory: views.directory, quotas, alarms, logger }, until),
    { signal, logger },
  )
  void keepGoing('The retention saga', (until) => retention({ store, directory: views.directory }, until), {
    signal,
    logger,
  })
  void keepGoing(
    'The sweep of files',
    (until) => sweepFiles({ blobs: node.blobs, aggregates, views, logger }, until),
    { signal, logger },
  )
  if (membership) {
    void keepGoing(
      'The recovery saga',
      (until) => watchWorkers({ store, aggregates, views, logger }, membership, until),
      { signal, logger },
    )
  }
}
